package rpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

func TestFeedbackGivesWay(t *testing.T) {
	x, y := pair(t, testHello, testHello)
	v := Feedback{Input: AppendPayload(nil, serving.Number(1)), Label: AppendPayload(nil, serving.Number(2)), User: []byte("ann")}
	for i, ahead := range []int{0, 0, 1 << 20, 0} {
		err := x.SendFeedback(7, ahead, v)
		if want := i == 1 || i == 3; errors.Is(err, ErrBacklog) != want || (err == nil) == want {
			t.Errorf("feedback %d behind at most %d bytes: %v", i, ahead, err)
		}
		if i == 1 {
			if err := x.Send(KindDrain, 0, nil); err != nil {
				t.Errorf("after it: %v", err)
			}
		}
	}
	if err := x.SendFeedback(7, 1<<30, slices.Repeat([]Feedback{v}, maxEntries+1)...); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the peer would take: %v", err)
	}
	if want := len(v.Input) + len(v.Label) + 3; v.Size() != want {
		t.Errorf("Size = %d, want %d", v.Size(), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got []Kind
	var wg sync.WaitGroup
	wg.Go(func() { x.Run(ctx, Unexpected) })
	y.Run(ctx, func(f Frame) error {
		if got = append(got, f.Kind); f.Kind == KindFeedback {
			if model, list, err := ParseFeedback(f.Body); err != nil || model != 7 || len(list) != 1 || string(list[0].User) != "ann" {
				t.Errorf("got %d %v, %v", model, list, err)
			}
		}
		if len(got) == 3 {
			cancel()
		}
		return nil
	})
	wg.Wait()
	if want := []Kind{KindFeedback, KindDrain, KindFeedback}; !slices.Equal(got, want) {
		t.Errorf("the peer got kinds %v, want %v", got, want)
	}
	if err := x.SendFeedback(7, 0, v); !errors.Is(err, ErrClosed) {
		t.Errorf("on a connection that has ended: %v", err)
	}
}
