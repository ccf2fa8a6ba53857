//go:build unix

// Package process starts commands and looks after them: model containers in
// local mode are child processes of Topsail.
//
// There are three processes in a row. The parent holds a [Child], whose Run
// keeps one command running. For each run it starts our own binary again as a
// small guard ([RunGuard]), and the guard starts the command. The guard is there
// because only a living process can clean up after a parent that was killed with
// SIGKILL: a parent-death signal reaches direct children alone, and Go's is sent
// when the creating thread ends.
//
// Two pipes join parent and guard:
//
//   - the lifeline: the guard reads it, only the parent can write to it, and
//     it never is. Its end says that the parent is gone or wants an end.
//   - the report: the guard writes "started PID" and "ended REASON".
//
// When the lifeline or the command ends, the guard kills what is left. On Linux
// it is a child subreaper, so a process that lost its parent comes to it, in
// whatever session or process group it is, and none is missed. Other systems
// have no subreaper: there only the command's process group is killed.
//
// If the guard itself is killed with SIGKILL, its command dies by parent-death
// signal (Linux) and the parent kills the command's process group. Processes
// that left that group are lost then; nothing else loses any.
package process
