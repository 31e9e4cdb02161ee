// Empty on purpose: the module around it is linked from the whole of libballast, so that its needed libraries can be
// read.
