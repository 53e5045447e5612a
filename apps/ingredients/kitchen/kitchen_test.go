package kitchen_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *kitchen.Kitchen {
	t.Helper()
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
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func TestThePresetIsThatOfTheSource(t *testing.T) {
	t.Parallel()
	if s := kitchen.Preset(); s.Lease != 3*time.Minute || s.MaxAttempts != 5 || s.Check() != nil {
		t.Errorf("the preset is %+v", s)
	}
}

func TestNamesAreResolvedOrHeldWithAReason(t *testing.T) {
	t.Parallel()
	k := open(t)
	for raw, want := range map[string]struct{ verdict, ingredient, reason string }{
		"Heinz ORGANIC Carrots, 500g":       {"matched", "carrot", "called so"},
		"2 x 400 g Mutti chopped tomatoes":  {"matched", "tomato", "called so"},
		"Crème... Parmesan cheese 1/2 lb":   {"matched", "parmesan", "almost so"},
		"tomato paste (3 tbsp)":             {"matched", "tomato puree", "called so"},
		"Chicken Brest Fillets – Tesco 1kg": {"matched", "chicken breast", "almost so"},
		"brokoli 300 g":                     {"on hold", "broccoli", "second source must agree"},
		"durian":                            {"on hold", "", "nothing is called like it"},
		"Dish Soap Lemon 500ml":             {"not food", "", "dish soap is no food"},
		"Cat food with salmon fillet":       {"not food", "", "cat food is no food"},
		"???":                               {"no name", "", "no name in '???'"},
		"3 x 400 g":                         {"no name", "", "no name in '3 x 400 g'"},
		"":                                  {"no name", "", "no name in ''"},
		"l":                                 {"on hold", "", "nothing is called like it"},
	} {
		var verdict, reason string
		var ingredient *string
		err := k.Pool().QueryRow(t.Context(), "select verdict, ingredient, reason from ingredients.resolve($1)", raw).Scan(&verdict, &ingredient, &reason)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if ingredient == nil {
			ingredient = new(string)
		}
		if verdict != want.verdict || *ingredient != want.ingredient || !strings.Contains(reason, want.reason) {
			t.Errorf("%s: %s, %s, %s; want %+v", raw, verdict, *ingredient, reason, want)
		}
	}
}

// take stores mentions, and returns their numbers and jobs, in order.
func take(t *testing.T, k *kitchen.Kitchen, mentions ...kitchen.Mention) (ids []int64, jobs []string) {
	t.Helper()
	if err := k.Take(t.Context(), mentions); err != nil {
		t.Fatal(err)
	}
	if err := k.Pool().QueryRow(t.Context(), "select array_agg(id order by id), array_agg(job::text order by id) from ingredients.mention").Scan(&ids, &jobs); err != nil {
		t.Fatal(err)
	}
	return ids, jobs
}

// TestSecondSourceConfirmsADoubtfulNameAtTheSameInstant matches mentions of two sources in two open transactions.
// Neither transaction sees the other's row, and yet none may stay on hold.
func TestSecondSourceConfirmsADoubtfulNameAtTheSameInstant(t *testing.T) {
	t.Parallel()
	ctx, k := t.Context(), open(t)
	ids, jobs := take(t, k, kitchen.Mention{Source: "scraper", Raw: "brokoli 1kg"}, kitchen.Mention{Source: "recipe", Raw: "200 g Brokoli"},
		kitchen.Mention{Source: "scraper", Raw: "Tesco brokoli"}, kitchen.Mention{Source: "scraper", Raw: "spinnach leafs"}, kitchen.Mention{Source: "scraper", Raw: "spinnach leafs 2 kg"})
	const match = "select ingredients.match($1, $2::uuid, 1, 'test')"
	first, err := k.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(ctx, match, ids[0], jobs[0]); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := k.Pool().Exec(ctx, match, ids[1], jobs[1])
		second <- err
	}()
	for waits := false; !waits && len(second) == 0; {
		const blocked = "select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))"
		if err := k.Pool().QueryRow(ctx, blocked).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(first.Commit(ctx), <-second); err != nil {
		t.Fatal(err)
	}
	for i := 2; i < len(ids); i++ { // the third name is sure by now; the last two come from one source, which cannot confirm itself
		if _, err := k.Pool().Exec(ctx, match, ids[i], jobs[i]); err != nil {
			t.Fatal(err)
		}
	}
	var states, trail []string
	err = k.Pool().QueryRow(ctx, "select array_agg(state order by id) from ingredients.mention").Scan(&states)
	err = errors.Join(err, k.Pool().QueryRow(ctx, "select array_agg(mention || ' ' || what order by id) from ingredients.trail").Scan(&trail))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"matched", "matched", "matched", "on hold", "on hold"}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if want := []string{"1 on hold", "1 confirmed", "2 matched", "3 matched", "4 on hold", "5 on hold"}; !slices.Equal(trail, want) {
		t.Errorf("trail %v, want %v", trail, want)
	}
}

func TestMentionsAreTakenInWithTheirJobsOrNotAtAll(t *testing.T) {
	t.Parallel()
	k := open(t)
	take(t, k, kitchen.Mention{Source: "scraper", Raw: "carrot"})
	if err := k.Take(t.Context(), []kitchen.Mention{{Source: "scraper", Raw: "basil"}, {Source: "a source that is none", Raw: "basil"}}); err == nil {
		t.Error("a mention of a source that has no queue was taken in")
	}
	var mentions, jobs int
	if err := k.Pool().QueryRow(t.Context(), "select (select count(*) from ingredients.mention), (select count(*) from sluice.job)").Scan(&mentions, &jobs); err != nil {
		t.Fatal(err)
	}
	if mentions != 1 || jobs != 1 {
		t.Errorf("%d mentions, %d jobs", mentions, jobs)
	}
	if err := kitchen.Prepare(t.Context(), k.Pool().Config().ConnString(), kitchen.Preset(), kitchen.DefaultPantry()); err != nil {
		t.Errorf("prepared again: %v", err)
	}
}
