package languages_test

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/languages"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestMatchersWakeBySignals enqueues a job while a matcher waits that polls once an hour.
func TestMatchersWakeBySignals(t *testing.T) {
	t.Parallel()
	if err := pgtest.Install(); err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"python", "node"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			url := pgtest.NewDatabase(t)
			if err := kitchen.Prepare(t.Context(), url, kitchen.Preset(), kitchen.DefaultPantry()); err != nil {
				t.Fatal(err)
			}
			k, err := kitchen.Open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = k.Close() }()
			match(t, language, url)
			for range 2 {
				waits(t, k)
				if err := k.Take(t.Context(), []kitchen.Mention{{Source: "recipe", Raw: "tomato paste (3 tbsp)"}}); err != nil {
					t.Fatal(err)
				}
				done(t, k)
			}
		})
	}
}

// done waits until all jobs have ended.
func done(t *testing.T, k *kitchen.Kitchen) {
	t.Helper()
	for left := 1; left > 0; time.Sleep(10 * time.Millisecond) {
		if err := k.Pool().QueryRow(t.Context(), "select count(*) from sluice.live").Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
}

// match starts a matcher, and ends it with the test. It must end at once, even while it waits.
func match(t *testing.T, language, url string) {
	t.Helper()
	program, err := languages.Find(t.Context(), language, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program.Command[0], append(program.Command[1:], "--db", url, "--poll", "3600")...)
	cmd.Env, cmd.Stderr = append(os.Environ(), program.Env...), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the matcher ended: %v", err)
		}
	})
}

// waits waits until the matcher is idle and listens for a signal.
func waits(t *testing.T, k *kitchen.Kitchen) {
	t.Helper()
	for idle := 0; idle < 20; time.Sleep(50 * time.Millisecond) {
		var waiting bool
		err := k.Pool().QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and state = 'idle' and query ~ 'sluice.wait')`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if idle++; !waiting {
			idle = 0
		}
	}
}
