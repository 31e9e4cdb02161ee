// What no program can start faster than.
int main() {}
