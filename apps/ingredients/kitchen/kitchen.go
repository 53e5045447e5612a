// Package kitchen is the database of the application: its own schema beside Sluice's in one PostgreSQL database, with
// the resolution of names as SQL functions, which matchers in all languages call.
package kitchen

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

//go:embed sql/tables.sql
var tablesSQL string

//go:embed sql/functions.sql
var functionsSQL string

//go:embed sql/pantry.sql
var pantrySQL string

//go:embed sql/aliases.sql
var aliasesSQL string

//go:embed sql/take.sql
var takeSQL string

// Sources are those of the source design, each a queue of its own. "Any" source is to claim from both (E-18).
func Sources() []string { return []string{"scraper", "recipe"} }

// Preset is how the queues begin: a lease of 180 s (E-3), and a bound for attempts and recoveries, which the source
// design only wished for (E-8).
func Preset() sluice.Settings {
	s := sluice.DefaultSettings()
	s.Lease = 180 * time.Second
	s.MaxAttempts = 5
	return s
}

// Kitchen is the open database.
type Kitchen struct {
	Store  *postgres.Store
	Client *sluice.Client
}

// Open opens the database at a URL, which was prepared.
func Open(ctx context.Context, url string) (*Kitchen, error) {
	store, err := postgres.Open(ctx, url, postgres.Options{})
	if err != nil {
		return nil, err
	}
	return &Kitchen{Store: store, Client: sluice.NewClient(store, sluice.ClientOptions{})}, nil
}

// Prepare brings Sluice's tables and functions and the application's own up to date, in the database at a URL, stocks the
// pantry and makes the queues. Those that are there keep their settings.
func Prepare(ctx context.Context, url string, preset sluice.Settings, pantry Pantry) error {
	if _, err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	k, err := Open(ctx, url)
	if err != nil {
		return err
	}
	if err := errors.Join(k.prepare(ctx, preset, pantry), k.Close()); err != nil {
		return fmt.Errorf("prepare the kitchen: %w", err)
	}
	return nil
}

// Close closes the database.
func (k *Kitchen) Close() error { return k.Store.Close() }

// Pool is for the application's own statements.
func (k *Kitchen) Pool() *pgxpool.Pool { return k.Store.Pool() }

func (k *Kitchen) prepare(ctx context.Context, preset sluice.Settings, pantry Pantry) error {
	for _, queue := range Sources() {
		if _, err := k.Client.EnsureQueue(ctx, queue, preset, sluice.Act{By: "ingredients", Reason: "preset"}); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, k.Pool(), func(tx pgx.Tx) error {
		// Two processes that prepare at the same time would make the same tables.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext('ingredients'))"); err != nil {
			return err
		}
		for _, statements := range []string{tablesSQL, functionsSQL} {
			if _, err := tx.Exec(ctx, statements); err != nil {
				return err
			}
		}
		return stock(ctx, tx, pantry)
	})
}

// stock stores what a pantry has. What is there stays.
func stock(ctx context.Context, tx pgx.Tx, pantry Pantry) error {
	var names, aliases, means []string
	for name, others := range pantry.Ingredients {
		names = append(names, name)
		for _, alias := range append([]string{name}, others...) {
			aliases, means = append(aliases, alias), append(means, name)
		}
	}
	var words, kinds []string
	for kind, all := range map[string][]string{"brand": pantry.Brands, "noise": pantry.Noise, "unit": pantry.Units, "decoy": pantry.Decoys} {
		for _, word := range all {
			words, kinds = append(words, word), append(kinds, kind)
		}
	}
	if _, err := tx.Exec(ctx, pantrySQL, names, words, kinds); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, aliasesSQL, aliases, means)
	return err
}

// Mention is what a source said.
type Mention struct {
	Source, Raw string
	// Faults is how many attempts are to meet an outage; for the demo and tests.
	Faults int
}

// Take takes mentions in, each with its job, all or none.
func (k *Kitchen) Take(ctx context.Context, mentions []Mention) error {
	var sources, raws []string
	var faults []int
	for _, m := range mentions {
		sources, raws, faults = append(sources, m.Source), append(raws, m.Raw), append(faults, m.Faults)
	}
	_, err := k.Pool().Exec(ctx, takeSQL, sources, raws, faults)
	return err
}
