package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/forecast"
)

// consolePages are what the viewers of a console look at, in turn.
var consolePages = []string{"/", "/queues", "/jobs", "/jobs?q=state:ready", "/tenants", "/dead", "/waves", "/workers"}

// jobLists are lists of jobs that a client reads over HTTP.
var jobLists = []string{
	"/jobs?limit=100", "/jobs?limit=100&where=state:ready", "/jobs?limit=100&where=queue:parcels",
	"/jobs?limit=100&where=queue:parcels%20state:completed", "/jobs?limit=100&where=tenant:tenant-7",
}

// measureConsole times reads of a store by console, HTTP and command beside many jobs, then lets viewers watch the console.
func measureConsole(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(ctx, parcels.Name(), sluice.DefaultSettings(), sluice.Act{By: "bench"}); err != nil {
		return nil, err
	}
	if err := fillWhole(ctx, store, client, task); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	c, err := openConsole(store)
	if err != nil {
		return nil, err
	}
	defer c.close()
	took, err := c.timed(ctx, c.server.URL, consolePages, task.Jobs)
	if err != nil {
		return nil, err
	}
	result := percentiles(took)
	if err := c.checkLists(ctx, min(100, task.History/findTenants)); err != nil {
		return nil, err
	}
	lists, err := c.timed(ctx, c.api.URL+httpapi.Root, jobLists, task.Jobs)
	if err != nil {
		return nil, err
	}
	result[ListP99] = stat.Percentile(lists, 99)
	if err := task.timeCommands(ctx, client, result); err != nil {
		return nil, err
	}
	if err := c.watch(ctx, task.Consoles); err != nil {
		return nil, err
	}
	while := time.Duration(task.Seconds * float64(time.Second))
	_, used, err := measured(task, func() (time.Duration, error) {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(while):
			return while, nil
		}
	})
	if err != nil {
		return nil, err
	}
	result[ClientCores], result[ServerCores] = used.client.Seconds()/while.Seconds(), used.server.Seconds()/while.Seconds()
	result[Memory], err = peakMemory()
	return result, err
}

// fillWhole makes whole jobs: finished ones by SQL, and waiting ones by the client.
func fillWhole(ctx context.Context, store sluice.Store, client *sluice.Client, task Task) error {
	if err := makeHistory(ctx, task); err != nil {
		return err
	}
	payload, err := json.Marshal(newParcel())
	if err != nil {
		return err
	}
	jobs := make([]sluice.NewJob, batch)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: parcels.Name(), Payload: payload}
	}
	for left := task.Due; left > 0; left -= batch {
		if _, err := client.EnqueueMany(ctx, jobs[:min(left, batch)]); err != nil {
			return err
		}
	}
	if err := tidy(ctx, task); err != nil {
		return err
	}
	_, err = forecast.Recount(ctx, store)
	return err
}

// consoles is a console and its viewers, in this process.
type consoles struct {
	server  *httptest.Server
	api     *httptest.Server
	console *console.Console
	leave   context.CancelFunc
	viewers sync.WaitGroup
}

// openConsole serves the console of a store.
func openConsole(store sluice.Store) (*consoles, error) {
	api := httpapi.New(store, httpapi.Options{NoLogin: true, Bounds: httpapi.Bounds{Rate: unbounded, Burst: unbounded, Concurrency: unbounded, Waiting: unbounded}})
	c, err := console.New(console.Options{API: api})
	if err != nil {
		return nil, err
	}
	return &consoles{server: httptest.NewServer(c), api: httptest.NewServer(api), console: c, leave: func() {}}, nil
}

// openConsoles serves the console of the store of a task, and lets viewers watch it.
func openConsoles(ctx context.Context, task Task) (stop func(), err error) {
	if task.Consoles == 0 {
		return func() {}, nil
	}
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, err
	}
	c, err := openConsole(store)
	if err == nil {
		err = c.watch(ctx, task.Consoles)
	}
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return func() {
		c.close()
		_ = store.Close()
	}, nil
}

// watch lets n viewers watch pages, and returns when each has got its first picture.
func (c *consoles) watch(ctx context.Context, n int) error {
	ctx, c.leave = context.WithCancel(ctx)
	first := make(chan error, n)
	for i := range n {
		c.viewers.Go(func() {
			first <- c.read(ctx, c.server.URL+consolePages[i%len(consolePages)], func(body io.Reader) error {
				_, err := io.ReadFull(body, make([]byte, 1000))
				first <- err
				_, _ = io.Copy(io.Discard, body) // ends when the viewer leaves
				return nil
			})
		})
	}
	for range n {
		if err := <-first; err != nil {
			return fmt.Errorf("watch the console: %w", err)
		}
	}
	return nil
}

// checkLists returns an error if a list has fewer jobs than least: reading it would measure nothing.
func (c *consoles) checkLists(ctx context.Context, least int) error {
	for _, page := range jobLists {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.api.URL+httpapi.Root+page, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		var list struct {
			Jobs []json.RawMessage `json:"jobs"`
		}
		err = json.NewDecoder(answer.Body).Decode(&list)
		_ = answer.Body.Close()
		if err != nil || len(list.Jobs) < least {
			return fmt.Errorf("%s: %d jobs, want %d: %w", page, len(list.Jobs), least, err)
		}
	}
	return nil
}

// timed reads n pages of a server in turn, and returns the time of each in milliseconds.
func (c *consoles) timed(ctx context.Context, root string, pages []string, n int) ([]float64, error) {
	took := make([]float64, 0, n)
	for i := range n {
		begun := time.Now()
		if err := c.read(ctx, root+pages[i%len(pages)], nil); err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(begun)))
	}
	return took, nil
}

// read gets a page, or with watch its stream.
func (c *consoles) read(ctx context.Context, page string, watch func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	if watch != nil {
		q := request.URL.Query()
		q.Set("live", "1")
		request.URL.RawQuery = q.Encode()
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", page, answer.Status)
	}
	if watch != nil {
		return watch(answer.Body)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// close sends the viewers away.
func (c *consoles) close() {
	c.leave()
	c.console.Drain()
	c.viewers.Wait()
	c.server.Close()
	c.api.Close()
}
