# MySQL leaves out its generator of error messages where it cross-compiles, and expects one for the build host. This
# adds it for the target at the end of MySQL's CMakeLists.txt; the emulator runs it.
cmake_language(DEFER CALL MYSQL_ADD_EXECUTABLE comp_err utilities/comp_err.cc SKIP_INSTALL LINK_LIBRARIES mysys)
