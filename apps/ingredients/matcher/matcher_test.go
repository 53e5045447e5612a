package matcher_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := matcher.Options{Queues: kitchen.Sources(), Slots: 2, Logger: slog.New(slog.DiscardHandler), Monitor: listener.Addr().String()}
	_ = listener.Close() // the matcher takes the port
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- matcher.Run(ctx, k, options) }()
	for path, want := range map[string]string{"/healthz": "live", "/readyz": "store", "/metrics": `sluice_moves_total{event="complete",queue="recipe"`} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if text := look("http://" + options.Monitor + path); strings.Contains(text, want) {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%s says nothing of %s:\n%s", path, want, text)
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// look gives what is answered with 200; empty: nothing yet.
func look(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return ""
	}
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}
