package sluice_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
)

func TestNamesOfQueues(t *testing.T) {
	t.Parallel()
	rule := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)
	names := []string{"", "a", strings.Repeat("q", 64), strings.Repeat("q", 65), "mail.eu:fast-1_b", "\u00e9t\u00e9", "a\x00", "a\n", "a b", "a/b", "\xff"}
	for c := range 256 {
		names = append(names, string([]byte{byte(c)}), "a"+string([]byte{byte(c)}), string(rune(c))+"a", "a"+string(rune(c)))
	}
	for _, name := range names {
		err := sluice.CheckQueueName(name)
		if want := rule.MatchString(name); (err == nil) != want {
			t.Errorf("%q: %v, want allowed: %v", name, err, want)
		}
		if err != nil && !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%q: %v is no ErrInvalid", name, err)
		}
	}
}

func TestBatchesThatKeepOthersWaitingAreRefused(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	large := []byte("\"" + strings.Repeat("x", 1<<20-2) + "\"")
	for name, batch := range map[string]struct {
		jobs    int
		payload []byte
		refused bool
	}{
		"too many":          {sluice.MaxBatch + 1, []byte("1"), true},
		"too large":         {513, large, true},
		"large":             {3, large, false},
		"as many as can be": {sluice.MaxBatch, []byte("no JSON"), false},
	} {
		jobs := make([]sluice.NewJob, batch.jobs)
		for i := range jobs {
			jobs[i] = sluice.NewJob{Queue: "q", Payload: batch.payload}
		}
		_, err := client.EnqueueMany(t.Context(), jobs)
		var invalid *sluice.InvalidError
		if refused := errors.As(err, &invalid) && invalid.Field == "jobs"; refused != batch.refused {
			t.Errorf("%s: error %.200v", name, err)
		}
	}
}
