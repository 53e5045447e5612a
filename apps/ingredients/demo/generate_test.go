package demo

import (
	"testing"

	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

// TestGeneratedNamesAreWhatTheyAreFor resolves the generated names. A demo whose doubtful names are not doubtful would
// prove nothing.
func TestGeneratedNamesAreWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	if err := pgtest.Install(); err != nil {
		t.Fatal(err)
	}
	url := pgtest.NewDatabase(t)
	if err := kitchen.Prepare(t.Context(), url, kitchen.Preset(), kitchen.DefaultPantry()); err != nil {
		t.Fatal(err)
	}
	k, err := kitchen.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	all, seen, matched := generate(600), map[kind]int{}, 0
	for _, m := range all {
		var verdict, ingredient string
		err := k.Pool().QueryRow(t.Context(), "select verdict, coalesce(ingredient, '') from ingredients.resolve($1)", m.Raw).Scan(&verdict, &ingredient)
		seen[m.kind]++
		fits := verdict == "matched" && ingredient == m.expected
		switch m.kind {
		case typo:
			if fits {
				matched++
			}
			fits = fits || verdict == "on hold"
		case twin:
			fits = verdict == "on hold" && ingredient == m.expected
		case single:
			fits = verdict == "on hold"
		case decoy:
			fits = verdict == "not food"
		case garbage:
			fits = verdict == "no name"
		}
		if !fits {
			t.Errorf("%s %q: %s %q, %v; expected %q", m.kind, m.Raw, verdict, ingredient, err, m.expected)
		}
	}
	for kind, least := range map[kind]int{plain: 300, typo: 30, twin: 16, single: 6, decoy: 30, garbage: 10} {
		if seen[kind] < least {
			t.Errorf("%d are %s, fewer than %d", seen[kind], kind, least)
		}
	}
	if 4*matched < 3*seen[typo] {
		t.Errorf("of %d typos only %d are matched at once", seen[typo], matched)
	}
}
