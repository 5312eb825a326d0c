"""The tables and figures of five papers on AUC maximisation, run again."""
