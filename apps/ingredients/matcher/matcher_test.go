package matcher_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/matcher"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestMatcherIsWatched(t *testing.T) {
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
	if err := k.Take(t.Context(), []kitchen.Mention{{Source: "recipe", Raw: "tomato paste (3 tbsp)"}}); err != nil {
		t.Fatal(err)
	}
	options := matcher.Options{Queues: kitchen.Sources(), Slots: 2, Logger: slog.New(slog.DiscardHandler), Monitor: apptest.FreeAddress(t)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- matcher.Run(ctx, k, options) }()
	apptest.Answers(t, "http://"+options.Monitor, map[string]string{
		"/healthz": "live", "/readyz": "store", "/metrics": `sluice_moves_total{event="complete",queue="recipe"`,
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
