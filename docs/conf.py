"""Configuration of the documentation site: ``make -C docs html``."""

import sys
from pathlib import Path

import matplotlib as mpl

import aucmax

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
mpl.use("Agg")

project = "aucmax"
author = "aucmax contributors"
copyright = author
version = release = aucmax.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "generated_pages",
    "mathml",
]
exclude_patterns = ["_build", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
default_role = "literal"
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 5,
    "image_srcset": ["2x"],
    "remove_config_comments": True,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"aucmax {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Pages without a section of their own have no navigation at the left.
_ALONE = "index getting-started statistics which-model benchmarks guarantees"
_COPIED = "generated/reproduction generated/changelog generated/contributing"
html_sidebars = {page: [] for page in f"{_ALONE} {_COPIED}".split()}
html_show_sphinx = False
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
