package nightly_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/nightly"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bench is a prepared database.
type bench struct {
	*testing.T
	url     string
	kitchen *kitchen.Kitchen
}

func setUp(t *testing.T, mentions ...kitchen.Mention) *bench {
	t.Helper()
	if err := pgtest.Install(); err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, url: pgtest.NewDatabase(t)}
	preset := kitchen.Preset()
	preset.Backoff = sluice.Backoff{Base: time.Hour, Factor: 1, Max: time.Hour}
	if err := kitchen.Prepare(t.Context(), b.url, preset, kitchen.DefaultPantry()); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.kitchen, err = kitchen.Open(t.Context(), b.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.kitchen.Close() })
	if err := b.kitchen.Take(t.Context(), mentions); err != nil {
		t.Fatal(err)
	}
	return b
}

// night runs the nightly command once, and returns its output.
func (b *bench) night(args ...string) string {
	b.Helper()
	var out bytes.Buffer
	if err := nightly.Command(b.Context(), append([]string{"-db", b.url}, args...), &out); err != nil {
		b.Fatal(err)
	}
	return out.String()
}

// has compares the texts that a query returns.
func (b *bench) has(query string, want ...string) {
	b.Helper()
	rows, err := b.kitchen.Pool().Query(b.Context(), query)
	if err != nil {
		b.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(got, want) {
		b.Errorf("%s\ngot  %q, %v\nwant %q", query, got, err, want)
	}
}

const states = "select state || coalesce(': ' || ingredient, '') from ingredients.mention order by id"

// TestMatchersFinishEachJobOnItsOwn gives a matcher some jobs that are not its own. Whatever happens to these, the
// others are done.
func TestMatchersFinishEachJobOnItsOwn(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"python", "node"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, kitchen.Mention{Source: "scraper", Raw: "???"})
			for _, payload := range []string{`"none of ours"`, `null`, `[]`, `{}`, `{"mention": "x"}`, `{"mention": 12345}`} {
				if _, err := b.kitchen.Client.Enqueue(t.Context(), sluice.NewJob{Queue: "scraper", Payload: []byte(payload)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.kitchen.Take(t.Context(), []kitchen.Mention{
				{Source: "scraper", Raw: "Carrots 1kg"}, {Source: "recipe", Raw: "2 lemons", Faults: 1}, {Source: "recipe", Raw: "napkins"},
			}); err != nil {
				t.Fatal(err)
			}
			b.night("-language", language)
			b.has(states, "failed", "matched: carrot", "open", "not food")
			b.has("select outcome || ' ' || count(*) from sluice.done group by outcome order by outcome", "completed 2", "dead 7")
			b.has("select what || ' ' || coalesce(reason, '') from ingredients.trail order by mention", "failed there is no name in '???'",
				"matched it is called so", "tried the kitchen is closed for a moment", "not food napkins is no food")
			b.has("select distinct split_part(resolved_by, ' ', 1) from ingredients.trail", language)
			b.has("select state || ' ' || attempts from sluice.live", "queued 1") // the next attempt is in an hour
		})
	}
}

// TestMatchersRenewWhatTheyHold has a job that takes longer than its lease, while another process requeues expired
// jobs. The lease is long enough for a renewal on a busy machine.
func TestMatchersRenewWhatTheyHold(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"python", "node"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, kitchen.Mention{Source: "recipe", Raw: "basil"}, kitchen.Mention{Source: "recipe", Raw: "parsley"})
			slow := nightly.Options{Queues: []string{"recipe"}, Limit: 2, Language: language, Out: t.Output(), Flags: []string{"--lease", "9", "--work", "5"}}
			done := make(chan error, 1)
			go func() { done <- nightly.Run(t.Context(), b.url, b.kitchen, slow) }()
			for len(done) == 0 { // requeues jobs whose lease has expired, as claims of others do
				if _, err := b.kitchen.Pool().Exec(t.Context(), "select sluice.requeue_expired(queue => 'recipe'), pg_sleep(0.2)"); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			b.has(states, "matched: basil", "matched: parsley")
			b.has("select outcome || ' ' || recoveries from sluice.done", "completed 0", "completed 0")
		})
	}
}

func TestNightlyRunIsBoundedAndRetriesOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	b := setUp(t, kitchen.Mention{Source: "scraper", Raw: "???"}, kitchen.Mention{Source: "recipe", Raw: "12"},
		kitchen.Mention{Source: "scraper", Raw: "basil"}, kitchen.Mention{Source: "recipe", Raw: "Lemons"}, kitchen.Mention{Source: "recipe", Raw: "brokoli"})
	if said, want := b.night("-dry-run"), "recipe: 1 would be matched\nrecipe: 1 would be no name\nrecipe: 1 would be on hold\nscraper: 1 would be matched\nscraper: 1 would be no name\n"; said != want {
		t.Errorf("the dry run says\n%swant\n%s", said, want)
	}
	b.has(states, "open", "open", "open", "open", "open")
	b.night("-limit", "2")
	b.has("select count(*)::text from sluice.done", "2")
	b.night("-limit", "10")
	b.has(states, "failed", "failed", "matched: basil", "matched: lemon", "on hold: broccoli")

	// The next night does nothing about dead jobs.
	b.night()
	b.has("select count(*)::text from sluice.live", "0")
	if _, err := b.kitchen.Pool().Exec(t.Context(), "update ingredients.mention set raw = 'ginger' where state = 'failed'"); err != nil {
		t.Fatal(err)
	}
	if said := b.night("-dry-run", "-retry-dead"); !strings.HasPrefix(said, "scraper: 1 dead would be tried again\nrecipe: 1 dead would be tried again\n") {
		t.Errorf("the dry run says %s", said)
	}
	b.has("select count(*)::text from sluice.live", "0")
	said := b.night("-retry-dead", "-queues", "scraper", "-reason", "the scraper was mended")
	if said != "scraper: 1 dead are tried again: the scraper was mended\n" {
		t.Errorf("it says %s", said)
	}
	b.has(states, "matched: ginger", "failed", "matched: basil", "matched: lemon", "on hold: broccoli")
	b.has("select what || ': ' || reason from ingredients.trail where mention = 1 order by id", "failed: there is no name in '???'",
		"retry asked: the scraper was mended", "matched: it is called so")
	b.has("select reason from sluice.audit where event = 'requeue'", "the scraper was mended")
}

// TestEnvironmentAsksForARetry sets a variable, so it cannot run in parallel.
func TestEnvironmentAsksForARetry(t *testing.T) {
	b := setUp(t, kitchen.Mention{Source: "scraper", Raw: "???"})
	b.night()
	t.Setenv("QUEUE_RETRY_FAILED", "true")
	if said, want := b.night("-language", "node"), "scraper: 1 dead are tried again: Retry requested by nightly workflow\nrecipe: 0 dead are tried again: Retry requested by nightly workflow\n"; said != want {
		t.Errorf("it says %s", said)
	}
	b.has("select generation || ' ' || outcome from sluice.done order by generation", "1 dead", "2 dead")
	t.Setenv("QUEUE_RETRY_FAILED", "perhaps")
	if err := nightly.Command(t.Context(), nil, t.Output()); err == nil || !strings.Contains(err.Error(), "neither true nor false") {
		t.Errorf("QUEUE_RETRY_FAILED=perhaps: %v", err)
	}
	t.Setenv("QUEUE_RETRY_FAILED", "")
	for args, want := range map[string]string{"-limit 0": "not at least 1", "-language cobol": "python and node"} {
		if err := nightly.Command(t.Context(), append(strings.Fields(args), "-db", b.url), t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
