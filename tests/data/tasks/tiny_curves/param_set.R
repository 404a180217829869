search_space = ps(
  OpenML_task_id = p_fct(levels = c("11", "12",
    "13", "14"), tags = "task_id"),
  epoch = p_int(lower = 1L, upper = 10L, tags = "budget"),
  batch_size = p_dbl(lower = log(16L), upper = log(512L), tags = c("int", "log"), trafo = function(x) as.integer(round(exp(x)))),
  learning_rate = p_dbl(lower = log(1e-4), upper = log(1e-1), tags = "log", trafo = function(x) exp(x)),
  momentum = p_dbl(lower = 0.1, upper = 0.99)
)

codomain = ps(
  val_accuracy = p_dbl(lower = 0, upper = 100, tags = "maximize"),
  val_cross_entropy = p_dbl(lower = 0, upper = Inf, tags = "minimize"),
  time = p_dbl(lower = 0, upper = Inf, tags = "minimize")
)
