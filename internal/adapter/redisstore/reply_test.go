package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
)

func TestRepliesContract(t *testing.T) {
	contract.Replies(t, func(t *testing.T) func() contract.ReplyStore {
		cfg := config(t)
		return func() contract.ReplyStore { return open(t, cfg) }
	})
}

// TestRepliesExpire has Redis forget claims and replies.
func TestRepliesExpire(t *testing.T) {
	l := newLearner(t)
	name := l.keys.reply("n")
	claim := func(free bool) {
		t.Helper()
		taken, err := l.ClaimReply(t.Context(), "n", "f")
		if err != nil || (taken == nil) != free {
			t.Errorf("got %+v and error %v", taken, err)
		}
	}
	claim(true)
	l.wantTTL(name, serving.ReplyClaimed)
	l.redis.Del(t.Context(), name)
	claim(true)
	if _, err := l.KeepReply(t.Context(), "n", serving.Reply{Status: 201}); err != nil {
		t.Fatal(err)
	}
	l.wantTTL(name, serving.ReplyKept)
	claim(false)
	if due := l.redis.ZScore(t.Context(), l.keys.replies, name).Val(); time.Until(time.UnixMilli(int64(due))) < serving.ReplyKept-time.Minute {
		t.Errorf("it is noted until %v", time.UnixMilli(int64(due)))
	}
	l.redis.Del(t.Context(), name)
	claim(true)
}

// TestTooManyReplies fills the room for names. Those that have expired make room.
func TestTooManyReplies(t *testing.T) {
	l := newLearner(t)
	now := time.Now()
	var members []redis.Z
	for i := range keptReplies {
		due := now.Add(time.Hour)
		if i < 2 {
			due = now.Add(-time.Second)
		}
		members = append(members, redis.Z{Score: float64(due.UnixMilli()), Member: fmt.Sprint(i)})
	}
	l.redis.ZAdd(t.Context(), l.keys.replies, members...)
	for _, name := range []string{"one", "two"} {
		if taken, err := l.ClaimReply(t.Context(), name, "f"); err != nil || taken != nil {
			t.Fatalf("got %+v and error %v", taken, err)
		}
	}
	if taken, err := l.ClaimReply(t.Context(), "three", "f"); !errors.Is(err, serving.ErrTooManyReplies) || taken != nil {
		t.Errorf("got %+v and error %v", taken, err)
	}
	if taken, err := l.ClaimReply(t.Context(), "two", "g"); err != nil || taken == nil || taken.Fingerprint != "f" {
		t.Errorf("got %+v and error %v", taken, err)
	}
	l.redis.Del(t.Context(), l.keys.reply("two")) // it is gone before its time, and has its place still
	if taken, err := l.ClaimReply(t.Context(), "two", "g"); err != nil || taken != nil {
		t.Errorf("got %+v and error %v", taken, err)
	}
	if err := l.DropReply(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if taken, err := l.ClaimReply(t.Context(), "three", "f"); err != nil || taken != nil {
		t.Errorf("got %+v and error %v", taken, err)
	}
}

// TestRepeatedClaim repeats a script whose answer was lost: it has not lost the name to
// itself.
func TestRepeatedClaim(t *testing.T) {
	l := newLearner(t)
	for i, mine := range []string{"mine", "mine", "another's"} {
		result, err := l.run(t.Context(), l.scripts.claim, []string{l.keys.reply("n"), l.keys.replies}, mine, 60_000, keptReplies, time.Now().UnixMilli())
		if err != nil || (result.([]any)[0] == done) != (i < 2) {
			t.Errorf("got %v and error %v", result, err)
		}
	}
	if taken, err := l.ClaimReply(t.Context(), "n", "f"); err == nil || taken != nil {
		t.Errorf("got %+v and error %v for what is no reply", taken, err)
	}
}
