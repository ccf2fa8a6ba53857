// Package netio reads and writes TCP connections without a word to Go's scheduler.
//
// Go's own connections tell it of each read and write, in case that one blocks. On
// a process that was idle this wakes a thread of the runtime (sysmon), which then
// looks every 20 µs for as long as anything runs. Where messages are few, and the
// processors busy with models, that costs more than all that is done for a message:
// it is two switches of tasks, in the middle of a computation. A socket
// here never blocks in a system call, so there is nothing to tell: it waits in the
// poller, as Go's own do.
//
// The price: the runtime's thread sleeps on until a timer fires or something else
// makes a system call. A goroutine that computes for long may keep its processor
// until then, for a second at most where any ticker runs. Nothing here does.
package netio
