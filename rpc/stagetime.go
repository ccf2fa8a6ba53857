package rpc

import (
	"iter"
	"time"
)

// StageTime is how an input fared at one stage of a pipeline.
type StageTime struct {
	Name  []byte
	Ended bool          // its way ended there, without an output
	Took  time.Duration // from when it could be run there to its answer; to the microsecond
}

const stageEnded = 1

// AppendStageTime appends one of an answer's Stages. A name has at most 255 bytes.
func AppendStageTime(b []byte, s StageTime) []byte {
	name := clip(s.Name, 1<<8-1)
	flags := uint8(0)
	if s.Ended {
		flags = stageEnded
	}
	b = append(append(b, uint8(len(name))), name...)
	return appendU32(append(b, flags), Micros(s.Took))
}

// StageTimes are those of an answer's Stages, in the order in which they ended.
func StageTimes(stages []byte) iter.Seq[StageTime] {
	return func(yield func(StageTime) bool) {
		c := cursor{frame: "REPLY", b: stages}
		for c.more() {
			if s := c.stageTime(); c.err != nil || !yield(s) {
				return
			}
		}
	}
}

func (c *cursor) stageTime() StageTime {
	s := StageTime{Name: c.str8("stage")}
	s.Ended = c.u8("stage flags")&stageEnded != 0
	s.Took = time.Duration(c.u32("stage time")) * time.Microsecond
	return s
}

// stageTimes takes a list of them, to the end.
func (c *cursor) stageTimes() []byte {
	from := c.off
	for c.more() {
		c.stageTime()
	}
	if c.err != nil {
		return nil
	}
	return c.b[from:c.off:c.off]
}
