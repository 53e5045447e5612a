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
