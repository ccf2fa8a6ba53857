package rpc

const (
	feedbackUser    = 1
	feedbackQueryID = 2
)

// Feedback is one labelled input for a model. When parsed, its slices point into
// the frame.
type Feedback struct {
	Input   []byte // an encoded payload
	Label   []byte // an encoded payload
	User    []byte
	QueryID uint64 // 0: none
}

// Size is how many bytes the feedback brings along.
func (v *Feedback) Size() int { return len(v.Input) + len(v.Label) + len(v.User) }

// SendFeedback sends feedback for an announced model. It gives way to queries: when
// more than ahead bytes wait to be sent already, it returns ErrBacklog. Else it
// fails as End does, and then nothing was sent.
func (c *Conn) SendFeedback(model uint32, ahead int, list ...Feedback) error {
	if len(list) > maxEntries {
		return ErrTooLarge
	}
	b := c.Begin(KindFeedback)
	if c.before.bytes() > ahead {
		c.mu.Unlock()
		return ErrBacklog
	}
	return c.End(AppendFeedback(b, model, list...), 0)
}

// AppendFeedback appends the body of a FEEDBACK frame for an announced model.
func AppendFeedback(b []byte, model uint32, list ...Feedback) []byte {
	b = appendU32(appendU32(b, model), uint32(len(list)))
	for _, v := range list {
		var at int
		b, at = openSize(b)
		b = append(append(b, v.Input...), v.Label...)
		if len(v.User) > 0 {
			b = appendField(b, feedbackUser, v.User)
		}
		if v.QueryID != 0 {
			b = appendU64(appendU32(append(b, feedbackQueryID), 8), v.QueryID)
		}
		b = closeSize(b, at)
	}
	return b
}

// ParseFeedback reads the body of a FEEDBACK frame.
func ParseFeedback(body []byte) (model uint32, list []Feedback, err error) {
	c := cursor{frame: "FEEDBACK", b: body}
	model = c.u32("model")
	for left := c.count(); left > 0 && c.err == nil; left-- {
		e := c.sub("entry")
		v := Feedback{Input: e.skipPayload(), Label: e.skipPayload()}
		for e.more() {
			tag, value := e.field()
			switch tag {
			case feedbackUser:
				v.User = value.rest()
			case feedbackQueryID:
				v.QueryID = value.u64("query id")
			}
			e.err = value.err
		}
		if c.err = e.err; c.err == nil {
			list = append(list, v)
		}
	}
	return model, list, c.err
}
