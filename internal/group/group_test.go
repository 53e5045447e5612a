package group_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/group"
)

func queue(name string, change func(*sluice.Settings)) sluice.Queue {
	q := sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}
	if change != nil {
		change(&q.Settings)
	}
	return q
}

func names(queues []sluice.Queue) (out []string) {
	for _, q := range queues {
		out = append(out, q.Name)
	}
	return out
}

func TestANewQueueBeginsWithItsNearestGroup(t *testing.T) {
	t.Parallel()
	stored := []sluice.Queue{
		queue("*", func(s *sluice.Settings) { s.Timeout = time.Hour }),
		queue("mail.*", func(s *sluice.Settings) { s.Timeout = time.Minute; s.Paused = true }),
		queue("mail.bulk.*", func(s *sluice.Settings) { s.Timeout = time.Second }),
		queue("mail.bulk", func(s *sluice.Settings) { s.Timeout = 7 * time.Second }),
	}
	for name, want := range map[string]time.Duration{
		"payments": time.Hour, "mail": time.Hour, "mailer.x": time.Hour, "mail.welcome": time.Minute, "mail.bulk": time.Minute,
		"mail.bulk.news": time.Second, "mail.bulk.a.b": time.Second, "mail.fresh.*": time.Minute, "mail.*": time.Hour,
	} {
		got := group.Begin(name, stored)
		if got.Timeout != want || got.Paused {
			t.Errorf("%s begins with timeout %s and paused %t, want %s and false", name, got.Timeout, got.Paused, want)
		}
	}
	if got := group.Begin("mail.welcome", nil); got != sluice.DefaultSettings() {
		t.Errorf("without groups a queue begins with %+v", got)
	}
}

func TestQueuesFollowTheirGroupUnlessTheyHaveAValueOfTheirOwn(t *testing.T) {
	t.Parallel()
	before := sluice.DefaultSettings()
	after := before
	after.Timeout, after.MaxAttempts, after.Rate = time.Minute, 9, sluice.Rate{Jobs: 7, Per: time.Second}
	stored := []sluice.Queue{
		queue("mail.*", nil),
		queue("mail.bulk.*", func(s *sluice.Settings) { s.MaxAttempts = 1 }),
		queue("mail.bulk.news", func(s *sluice.Settings) { s.MaxAttempts = 1 }),
		queue("mail.bulk.own", func(s *sluice.Settings) { s.Timeout = time.Second }),
		queue("mail.own", func(s *sluice.Settings) { s.Timeout, s.MaxAttempts, s.Rate = 1, 2, sluice.Rate{Jobs: 3, Per: 4} }),
		queue("mail.welcome", func(s *sluice.Settings) { s.Paused = true }),
	}
	changed, err := group.Follow("mail.*", before, after, stored)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"mail.bulk.*", "mail.bulk.news", "mail.bulk.own", "mail.welcome"}; !slices.Equal(names(changed), want) {
		t.Fatalf("changed %q, want %q", names(changed), want)
	}
	for _, q := range changed {
		attempts, timeout := 1, time.Minute
		switch q.Name {
		case "mail.welcome":
			attempts = 9
			if !q.Settings.Paused {
				t.Error("a group has resumed a paused queue")
			}
		case "mail.bulk.own":
			attempts, timeout = 3, time.Second
		}
		if q.Settings.MaxAttempts != attempts || q.Settings.Timeout != timeout || q.Settings.Rate != after.Rate {
			t.Errorf("%s follows with %d attempts, timeout %s, rate %s", q.Name, q.Settings.MaxAttempts, q.Settings.Timeout, q.Settings.Rate)
		}
	}
}

func TestSettingsThatDoNotFitAQueuesOwnAreRefused(t *testing.T) {
	t.Parallel()
	before := sluice.DefaultSettings()
	after := before
	after.Backoff.Base = 30 * time.Second
	_, err := group.Follow("mail.*", before, after, []sluice.Queue{queue("mail.welcome", func(s *sluice.Settings) { s.Backoff.Max = 3 * time.Second })})
	if !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestExceptionsAreTheSettingsThatDiffer(t *testing.T) {
	t.Parallel()
	own, shared := sluice.DefaultSettings(), sluice.DefaultSettings()
	own.Timeout, own.Paused = time.Second, true
	if got := group.Exceptions(own, shared); !slices.Equal(got, []string{"timeout"}) {
		t.Errorf("exceptions: %q", got)
	}
}
