package records

import "github.com/topsail-serving/topsail/stream"

// Why records become dead letters, beside the reasons that every job has.
const (
	UnknownApp     stream.Reason = "unknown_app"      // names an app that there is not, or that the job does not serve
	WrongInput     stream.Reason = "wrong_input"      // not what the app takes
	GaveDefault    stream.Reason = "default"          // the answer was the default, and the job does not want those
	ResultTooLarge stream.Reason = "result_too_large" // than the broker takes
	UnfitResult    stream.Reason = "unfit_result"     // not what the schema of results takes
)

// What records come to otherwise.
const (
	predicted   = "predicted"
	gaveDefault = "default"
	dropped     = "dropped"
)

func unknownApp(name string) *stream.Rejection {
	return stream.Rejected(UnknownApp, "there is no app %q: register it, and send the record again", name)
}
