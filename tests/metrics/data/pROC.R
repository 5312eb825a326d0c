# Reference values of R's pROC 1.18 for pROC_rows.csv; run in this folder:
#   Rscript pROC.R
# pROC_rows.csv is simulated (normal scores, rounded so that some are tied), see
# test_proc.py.
suppressMessages(library(pROC))
rows <- read.csv("pROC_rows.csv")
curve <- function(keep, score) {
  roc(rows$y[keep], rows[[score]][keep], levels = c(0, 1), direction = "<",
      quiet = TRUE)
}
every <- rep(TRUE, nrow(rows))
a <- curve(every, "a")
b <- curve(every, "b")
out <- list()
add <- function(name, value) out[[name]] <<- as.numeric(value)
add("auc_a", auc(a))
add("auc_b", auc(b))
add("var_a", var(a, method = "delong"))
add("var_b", var(b, method = "delong"))
add("wald_low_a", ci(a, method = "delong")[1])
add("wald_high_a", ci(a, method = "delong")[3])
paired <- roc.test(a, b, method = "delong", paired = TRUE)
add("paired_z", paired$statistic)
add("paired_p", paired$p.value)
add("paired_low", paired$conf.int[1])
add("paired_high", paired$conf.int[2])
one <- curve(rows$group == 1, "a")
two <- curve(rows$group == 2, "a")
unpaired <- roc.test(one, two, method = "delong", paired = FALSE)
add("unpaired_t", unpaired$statistic)
add("unpaired_df", unpaired$parameter)
add("unpaired_p", unpaired$p.value)
add("partial_fpr_0.1", auc(a, partial.auc = c(1, 0.9)))
add("partial_fpr_0.25", auc(a, partial.auc = c(1, 0.75)))
add("mcclish_fpr_0.25", auc(a, partial.auc = c(1, 0.75), partial.auc.correct = TRUE))
add("partial_tpr_0.8", auc(a, partial.auc = c(1, 0.8), partial.auc.focus = "se"))
for (specificity in c(0.95, 0.88, 0.72, 0.51)) {
  add(paste0("sensitivity_", specificity),
      coords(a, x = specificity, input = "specificity", ret = "sensitivity"))
}
add("power_0.8_20_80", power.roc.test(auc = 0.8, ncases = 20, ncontrols = 80)$power)
add("power_0.65_40_60", power.roc.test(auc = 0.65, ncases = 40, ncontrols = 60)$power)
size <- power.roc.test(auc = 0.7, power = 0.9, kappa = 4)
add("cases_0.7", size$ncases)
add("controls_0.7", size$ncontrols)
# Hand and Till with a score for each class.
three <- multiclass.roc(rows$class, as.matrix(setNames(rows[c("c1", "c2", "c3")], 1:3)),
                        quiet = TRUE)
add("hand_till", three$auc)
values <- data.frame(name = names(out), value = sprintf("%.15g", unlist(out)))
write.csv(values, "pROC_values.csv", row.names = FALSE, quote = FALSE)
