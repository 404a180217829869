# Runs the seeds 1 .. 60 in two processes, whose memory is laid out and filled differently: -D
# PROGRAM=tune_simulate. Their journals must be the same, byte for byte.
foreach(fill 85 170)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env MALLOC_PERTURB_=${fill} ${PROGRAM} --seeds 60 --digests
    OUTPUT_VARIABLE told_${fill} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ended with ${result}:\n${told_${fill}}")
  endif()
endforeach()
if(NOT told_85 MATCHES "\n60: [0-9]+ events")
  message(FATAL_ERROR "there is no digest of seed 60:\n${told_85}")
endif()
if(NOT told_85 STREQUAL told_170)
  message(FATAL_ERROR "two processes make different journals:\n${told_85}\nand\n${told_170}")
endif()
