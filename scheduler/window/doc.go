// Package window remembers the demand of the last two minutes, second by second,
// and says what of it is known.
//
// A second is known when every gateway that was expected to report it has done so.
// A gateway is expected from its first report to the one marked as its last; one
// that falls silent without such a report is expected for as long as it may only
// be late, and then no longer. Where nothing reports, nothing is known, and an
// unknown second is never taken for one without queries.
//
// A Windows belongs to one goroutine. Clocks of the machines that report must
// agree to a second or two.
package window
