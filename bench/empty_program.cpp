// No program can start faster than this one.
int main() {}
