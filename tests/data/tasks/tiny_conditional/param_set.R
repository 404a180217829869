search_space = ps(
  booster = p_fct(levels = c("gblinear", "gbtree")),
  nrounds = p_dbl(lower = 2, upper = 8, tags = c("int", "log"), trafo = function(x) as.integer(round(exp(x)))),
  eta = p_dbl(lower = -7, upper = 0, tags = "log", trafo = function(x) exp(x), depends = booster %in% c("gbtree")),
  max_depth = p_int(lower = 1L, upper = 15L, depends = booster == "gbtree"),
  trainsize = p_dbl(lower = 0.03, upper = 1, tags = "budget"),
  repl = p_int(lower = 1L, upper = 10L, tags = "budget"),
  task_id = p_fct(levels = c("3", "5"),
    tags = "task_id"
  )
)

codomain = ps(
  acc = p_dbl(lower = 0, upper = 1, tags = "maximize"),
  logloss = p_dbl(lower = 0, upper = Inf, tags = "minimize"),
  timetrain = p_dbl(lower = 0, upper = Inf, tags = "minimize")
)
