package route

import "github.com/topsail-serving/topsail/rpc"

// feedbackAhead is how many bytes may wait to be sent to a replica for feedback to
// be put behind them.
const feedbackAhead = 1 << 20

// Feedback sends feedback to all replicas of the group, since each holds the model in
// memory of its own, and returns to how many. It waits for none: a replica that is
// not connected or does not read fast enough is left out, and so is every one if the
// list is larger than a frame may be. The inputs and labels are encoded payloads.
func (g *Group) Feedback(list ...rpc.Feedback) int {
	if g.Len() == 0 || len(list) == 0 {
		return 0
	}
	sent := 0
	for _, t := range g.targets {
		if t.feedback(list) == nil {
			sent++
		}
	}
	return sent
}

func (t *Target) feedback(list []rpc.Feedback) error {
	conn := t.replica.connection()
	if conn == nil {
		return rpc.ErrClosed
	}
	return conn.SendFeedback(t.model, feedbackAhead, list...)
}
