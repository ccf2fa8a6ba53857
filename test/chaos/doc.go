// Package chaos breaks a real cluster under steady load and looks at what its clients saw. Each
// test does one thing that happens in the world: a process that dies or freezes, a machine that is
// lost, a server that is unavailable.
//
// `make faults` takes servers away for 20 s; `make test-faults` for 60 s. The report of all faults is printed at the end.
package chaos
