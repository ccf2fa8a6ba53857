package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/retry"
)

// Remedy is how an alarm about a lost catalog can end.
type Remedy string

const (
	RemedyRestore Remedy = "restore" // see Store.Restore
	RemedyAccept  Remedy = "accept"  // see Store.Accept
)

// remedyHolds is how long a remedy that was asked for waits for a process to do it.
const remedyHolds = time.Minute

// ErrNoAlarm says that no process which runs has an alarm to end.
var ErrNoAlarm = errors.New("no process that runs has an alarm to end")

// Ask has the processes that run, and that have the alarm, end it. It returns when
// one has; with ErrNoAlarm when none does so until ctx ends.
func (s *Store) Ask(ctx context.Context, remedy Remedy) error {
	if err := s.client.Set(ctx, s.keys.remedy, string(remedy), remedyHolds).Err(); err != nil {
		return fmt.Errorf("ask for the remedy: %w", err)
	}
	for {
		retry.Sleep(ctx, 100*time.Millisecond)
		switch asked, err := s.asked(ctx); {
		case ctx.Err() != nil:
			return errors.Join(ErrNoAlarm, s.takeBack(ctx))
		case err != nil:
			return err
		case asked == "":
			return nil
		}
	}
}

// takeBack sees to it that a remedy does not wait for the next alarm.
func (s *Store) takeBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return s.client.Del(ctx, s.keys.remedy).Err()
}

// asked is the remedy that was asked for and not done yet; empty for none.
func (s *Store) asked(ctx context.Context) (Remedy, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := s.client.Get(ctx, s.keys.remedy).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look for a remedy: %w", err)
	}
	return Remedy(text), nil
}

// applyRemedy ends an alarm of this process as was asked for, if it was.
func (s *Store) applyRemedy(ctx context.Context) {
	if !s.lost() {
		return
	}
	s.raise(ctx)
	remedy, err := s.asked(ctx)
	switch {
	case err != nil || remedy == "":
		return
	case remedy == RemedyAccept:
		_, err = s.Accept(ctx)
	default:
		_, err = s.Restore(ctx)
	}
	if err != nil && !errors.Is(err, ErrNotLost) {
		s.log.Error("cannot end the alarm as an operator asked", "remedy", string(remedy), "err", err)
		return
	}
	s.log.Info("ended the alarm as an operator asked", "remedy", string(remedy))
	if err := s.client.Del(ctx, s.keys.remedy).Err(); err != nil {
		s.log.Warn("cannot take back a remedy that was done", "err", err) // it ends by itself
	}
}

// alarmHolds is how long an alarm is known to others after it was raised last.
const alarmHolds = 3 * blockFor

// raise tells those who know nothing of the catalog that there was one.
func (s *Store) raise(ctx context.Context) {
	if err := s.client.Set(ctx, s.keys.alarm, s.State().Alarm, alarmHolds).Err(); err != nil {
		s.log.Debug("cannot tell others of the alarm", "err", err)
	}
}

// othersLost is the alarm of another process, for one that knows no catalog and
// would begin a new one.
func (s *Store) othersLost(ctx context.Context) error {
	if s.current.Load().at.Epoch != "" {
		return nil
	}
	text, err := s.client.Get(ctx, s.keys.alarm).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return fmt.Errorf("look for an alarm: %w", err)
	}
	return fmt.Errorf("%w: another process says: %s", ErrLost, text)
}

// lost says whether this process has the alarm that Restore and Accept end.
func (s *Store) lost() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return errors.Is(s.health.alarm, ErrLost)
}
