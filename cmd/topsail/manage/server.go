package manage

import (
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/web/api"
)

// Server is what the doctor has just found of a server, as the API shows it.
func Server(f doctor.Finding) api.Server {
	state := string(f.State)
	if f.State == doctor.Fail {
		state = "failed"
	}
	return api.Server{Name: f.Check, State: state, Detail: f.Detail, Next: f.Next, Checked: time.Now().UTC()}
}
