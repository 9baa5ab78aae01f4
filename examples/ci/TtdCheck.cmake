# SPDX-License-Identifier: MIT
# ttdcheck_add_test(NAME name COMMAND program [argument...]), a test of CTest that fails if the
# program fails, or if its heap has leaks or errors. The program may be a target.
find_program(TTDCHECK ttdcheck HINTS "${CMAKE_CURRENT_LIST_DIR}")
if(NOT TTDCHECK)
  message(FATAL_ERROR "ttdcheck is neither beside TtdCheck.cmake nor in PATH")
endif()

function(ttdcheck_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME" "COMMAND")
  list(POP_FRONT test_COMMAND program)
  if(TARGET "${program}")
    set(program "$<TARGET_FILE:${program}>")
  endif()
  add_test(NAME "${test_NAME}" COMMAND "${TTDCHECK}" "${program}" ${test_COMMAND})
endfunction()
