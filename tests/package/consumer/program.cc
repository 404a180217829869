#include <iostream>

#include "line.h"

int main(int argc, char** argv) {
  const auto analysis = tune::run<Line>(tune::options_from_args(argc, argv, {
      .config = {{"slope", tune::grid_search({1, 3, 2})}},
      .metric = "height",
      .stop = {{"training_iteration", 2}},
  }));
  std::cout << "best slope " << analysis.best_config().get<int>("slope") << "\n";
}
