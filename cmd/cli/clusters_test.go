//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/temporaltest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// clusters holds two Temporal servers, home and away, with a queue for each. Each workflow returns the name of its
// cluster.
type clusters struct {
	*testing.T
	db     string
	store  sluice.Store
	client *sluice.Client
	away   *temporaltest.Server
	flags  map[string]string // the --engine flag of each cluster
	queues map[string]string
}

func newClusters(t *testing.T) *clusters {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.db")
	c := &clusters{T: t, db: "sqlite:" + file, flags: make(map[string]string), queues: make(map[string]string)}
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c.store, c.client = store, sluice.NewClient(store, sluice.ClientOptions{})
	c.away, err = temporaltest.Start(t.Context(), temporaltest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.away.Stop)
	c.add("home", temporaltest.Address(t))
	c.add("away", c.away.Address)
	return c
}

// add makes the queue of a cluster, and starts a Temporal worker for its workflows there.
func (c *clusters) add(cluster, address string) {
	c.Helper()
	queue := cluster + "-" + sluice.NewID().String()
	c.queues[cluster], c.flags[cluster] = queue, fmt.Sprintf("--engine=%s=temporal://%s/default?calls=4", cluster, address)
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType, settings.RunTaskQueue, settings.RunResults = cluster, queue, queue, true
	settings.Lease, settings.RecoverInterval, settings.FollowInterval = 3*time.Second, 200*time.Millisecond, 200*time.Millisecond
	if _, err := c.client.EnsureQueue(c.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
		c.Fatal(err)
	}
	server, err := client.Dial(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		c.Fatal(err)
	}
	w := sdkworker.New(server, queue, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context, any) (string, error) { return cluster, nil }, workflow.RegisterOptions{Name: queue})
	if err := w.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		w.Stop()
		server.Close()
	})
}

func (c *clusters) enqueue(cluster string) sluice.ID {
	c.Helper()
	receipt, err := c.client.Enqueue(c.Context(), sluice.NewJob{Queue: c.queues[cluster], Payload: []byte(`{}`)})
	if err != nil {
		c.Fatal(err)
	}
	return receipt.ID
}

// completes waits until a job is completed by a run at the named cluster.
func (c *clusters) completes(cluster string, id sluice.ID) {
	c.Helper()
	var job sluice.Job
	eventually(c.T, func() bool {
		var err error
		if job, err = c.client.Job(c.Context(), id); err != nil {
			c.Fatal(err)
		}
		return job.State.Finished()
	})
	if job.State != sluice.StateCompleted || string(job.Result) != fmt.Sprintf("%q", cluster) {
		c.Errorf("the job of %s is %s: %s%s", cluster, job.State, job.Result, job.Error)
	}
}

// says runs a command again and again, whatever its exit code, until its output contains all texts.
func (c *clusters) says(texts []string, args ...string) {
	c.Helper()
	var out []byte
	defer func() {
		if c.Failed() {
			c.Logf("sluice %s does not say %q:\n%s", strings.Join(args, " "), texts, out)
		}
	}()
	eventually(c.T, func() bool {
		cmd := exec.CommandContext(c.Context(), "sluice", args...)
		cmd.Env = append(os.Environ(), "SLUICE_DB="+c.db)
		var err error
		out, err = cmd.Output()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			c.Fatal(err)
		}
		for _, text := range texts {
			if !strings.Contains(string(out), text) {
				return false
			}
		}
		return true
	})
}

// follows waits until exactly one process follows the runs at a cluster, and returns that process.
func (c *clusters) follows(cluster string) (holder string) {
	c.Helper()
	eventually(c.T, func() bool {
		leads, err := presence.Given(c.store).Leaders(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		led := 0
		for _, lead := range leads {
			if lead.Held && lead.Task == presence.FollowTask(cluster) {
				holder, led = lead.Holder, led+1
			}
		}
		if led > 1 {
			c.Errorf("%d follow the runs at %s", led, cluster)
		}
		return led > 0
	})
	return holder
}

// TestTwoClustersAreServedByOneProcessAndByOneEach: jobs run at the cluster that their queue names. While one cluster
// is away, the other's queue goes on. `/readyz` and commands name the cluster that is away, and no job counts an
// attempt.
func TestTwoClustersAreServedByOneProcessAndByOneEach(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log("needs Temporal servers: only without -short")
		return
	}
	c := newClusters(t)
	both := serve(t, c.db, "--grace", "1s", c.flags["home"], c.flags["away"])
	c.completes("home", c.enqueue("home"))
	c.completes("away", c.enqueue("away"))
	if home, away := c.follows("home"), c.follows("away"); home != away {
		t.Errorf("%s and %s follow, though one process serves both", home, away)
	}
	both.becomes(t, 200, "✔ engine     can be reached: away, home")

	if err := c.away.Halt(); err != nil {
		t.Fatal(err)
	}
	waits := c.enqueue("away")
	c.completes("home", c.enqueue("home"))
	const trouble = "the breaker is open"
	c.says([]string{c.queues["away"] + ": " + trouble, ": engine away: ", "do:        sluice engine check " + c.queues["away"] + " --engine away=temporal://"}, "doctor")
	c.says([]string{trouble, ": engine away: "}, "why", waits.String())
	later := c.enqueue("away")
	c.says([]string{`no dispatcher hands the queue's jobs to the engine "away": ` + trouble}, "why", later.String())
	if text := both.becomes(t, 200, `! engine     engine "away", asked about queue "`+c.queues["away"]); strings.Contains(text, `engine "home", asked`) {
		t.Errorf("home is said to be away too:\n%s", text)
	}
	c.completes("home", c.enqueue("home"))
	both.terminate(t)

	start(t, c.db, "dispatch", c.flags["home"])
	start(t, c.db, "dispatch", c.flags["away"])
	both.ends(t, 0)
	c.completes("home", c.enqueue("home"))
	if home, away := c.follows("home"), c.follows("away"); home == away {
		t.Errorf("%s follows both, though it has one of them", home)
	}
	for _, id := range []sluice.ID{waits, later} {
		if job, err := c.client.Job(t.Context(), id); err != nil || job.State.Finished() || job.Attempts > 0 {
			t.Errorf("a job of the cluster that is away is %s after %d attempts, %v", job.State, job.Attempts, err)
		}
	}
}
