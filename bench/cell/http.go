package cell

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/upkeep"
)

const (
	// claimSize is the number of jobs per claim over HTTP.
	claimSize = 100
	// unbounded is a bound of the API that no cell reaches.
	unbounded = 1 << 30
)

// httpQueue is Sluice through its HTTP API, on loopback. The server is in this process: its processor time counts.
type httpQueue struct {
	store  sluice.Store
	task   Task
	handle handle
	client *http.Client
	root   string
	server *http.Server
	api    *httpapi.API
	look   *look // nil until the first query

	quit  context.CancelFunc // nil: not started
	ended sync.WaitGroup
}

func openHTTP(ctx context.Context, task Task, handle handle) (queue, error) {
	return serveHTTP(ctx, task, handle)
}

func serveHTTP(ctx context.Context, task Task, handle handle) (*httpQueue, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	bounds := httpapi.Bounds{Rate: unbounded, Burst: unbounded, Concurrency: unbounded, Waiting: unbounded}
	q := &httpQueue{store: store, task: task, handle: handle, root: "http://" + listener.Addr().String() + httpapi.Root}
	q.api = httpapi.New(store, httpapi.Options{NoLogin: true, Bounds: bounds})
	mux := http.NewServeMux()
	mux.Handle(httpapi.Root+"/", q.api)
	mux.HandleFunc("/memory", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, heapInUse()) })
	q.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	q.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	go func() { _ = q.server.Serve(listener) }() // ends with stop
	return q, nil
}

// post sends a request and decodes the answer into out.
func (q *httpQueue) post(ctx context.Context, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, q.root+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	return q.do(request, out)
}

func (q *httpQueue) do(request *http.Request, out any) error {
	response, err := q.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(out)
}

type httpJob struct {
	Queue   string `json:"queue"`
	Payload any    `json:"payload"`
}

// enqueue sends a stream of lines, and reads a line for each.
func (q *httpQueue) enqueue(ctx context.Context, n int) error {
	reader, writer := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(writer, 64<<10)
		line, err := json.Marshal(httpJob{parcels.Name(), newParcel()})
		for range n {
			_, _ = out.Write(line)
			err = errors.Join(err, out.WriteByte('\n'))
		}
		_ = writer.CloseWithError(errors.Join(err, out.Flush()))
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, q.root+"/jobs", reader)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := q.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	stored, lines := 0, bufio.NewScanner(response.Body)
	for lines.Scan() {
		var line struct {
			ID    string          `json:"id"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Error != nil {
			return fmt.Errorf("line %q: %w", lines.Bytes(), err)
		}
		if line.ID != "" {
			stored++
		}
	}
	if stored != n {
		return fmt.Errorf("%d of %d lines were stored: %s: %w", stored, n, response.Status, lines.Err())
	}
	return nil
}

func (q *httpQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	return q.post(ctx, "/jobs", httpJob{parcels.Name(), parcel}, &struct{}{})
}

// httpClaim claims jobs, and waits for them.
type httpClaim struct {
	Queues []string `json:"queues"`
	Limit  int      `json:"limit"`
	Wait   string   `json:"wait"`
	Worker string   `json:"worker"`
	Token  string   `json:"token"`
}

type httpOutcome struct {
	ID      string `json:"id"`
	Token   string `json:"token"`
	Outcome string `json:"outcome"`
}

type httpSettle struct {
	Worker string        `json:"worker"`
	Jobs   []httpOutcome `json:"jobs"`
}

// start starts as many clients as fill the slots, and upkeep.
func (q *httpQueue) start(ctx context.Context) error {
	ctx, q.quit = context.WithCancel(ctx)
	for n := range max(1, q.task.Slots/claimSize) {
		q.ended.Go(func() { q.work(ctx, fmt.Sprintf("bench:%d:%s", n, rand.Text())) })
	}
	q.ended.Go(func() { _ = upkeep.New(q.store, upkeep.Options{}).Run(ctx) })
	return nil
}

// work claims and settles until ctx ends.
func (q *httpQueue) work(ctx context.Context, name string) {
	for ctx.Err() == nil {
		var claimed struct {
			Jobs []struct {
				ID      string `json:"id"`
				Token   string `json:"token"`
				Payload Parcel `json:"payload"`
			} `json:"jobs"`
		}
		claim := httpClaim{[]string{parcels.Name()}, min(claimSize, max(1, q.task.Slots)), "30s", name, rand.Text()}
		if q.post(ctx, "/work/claim", claim, &claimed) != nil || len(claimed.Jobs) == 0 {
			continue
		}
		settle := httpSettle{Worker: name}
		for _, job := range claimed.Jobs {
			q.handle(job.Payload)
			settle.Jobs = append(settle.Jobs, httpOutcome{job.ID, job.Token, "complete"})
		}
		_ = q.post(ctx, "/work/settle", settle, &struct{}{}) // what is not settled keeps the cell from its end
	}
}

func (q *httpQueue) unfinished(ctx context.Context) (bool, error) {
	if q.look == nil {
		var err error
		if q.look, err = openLook(ctx, q.task); err != nil {
			return false, err
		}
	}
	return q.look.unfinished(ctx)
}

func (q *httpQueue) stop(context.Context) error {
	if q.quit != nil {
		q.quit()
	}
	q.api.Drain()
	q.ended.Wait()
	err := q.server.Close()
	if q.look != nil {
		err = errors.Join(err, q.look.db.Close())
	}
	return errors.Join(err, q.store.Close())
}

// measureWaiting lets many clients wait for jobs of an empty queue, and counts statements and the memory of the server,
// which is another process.
func measureWaiting(ctx context.Context, task Task) (Result, error) {
	if err := countStatements(ctx, task); err != nil {
		return nil, err
	}
	other, root, err := startServer(ctx, task)
	if err != nil {
		return nil, err
	}
	defer other.Stop()
	q := &httpQueue{task: task, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: task.Callers}}, root: root + httpapi.Root}
	if err := q.enqueueOne(ctx, newParcel()); err != nil { // makes the queue
		return nil, err
	}
	alone, err := q.memory(ctx, root)
	if err != nil {
		return nil, err
	}
	waiting, leave := context.WithCancel(ctx)
	defer q.ended.Wait()
	defer leave()
	for n := range task.Callers {
		q.ended.Go(func() {
			for waiting.Err() == nil {
				claim := httpClaim{[]string{parcels.Name()}, 1, "60s", fmt.Sprintf("bench:%d:%s", n, rand.Text()), rand.Text()}
				_ = q.post(waiting, "/work/claim", claim, &struct{}{})
			}
		})
	}
	time.Sleep(2 * idle)
	first, err := statements(ctx, task)
	if err != nil {
		return nil, err
	}
	held, err := q.memory(ctx, root)
	if err != nil {
		return nil, err
	}
	watched := time.Duration(task.Seconds * float64(time.Second))
	time.Sleep(watched)
	last, err := statements(ctx, task)
	return Result{Statements: (last - first) / watched.Seconds(), WaiterMemory: (held - alone) / 1024 / float64(task.Callers)}, err
}

// startServer starts the server's process, and returns its address.
func startServer(ctx context.Context, task Task) (*Process, string, error) {
	task.Kind = HTTPServer
	program, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	other, err := Start(ctx, program, os.Args[1:], task)
	if err != nil {
		return nil, "", err
	}
	ready, err := other.Next()
	if err != nil {
		other.Stop()
		return nil, "", fmt.Errorf("the server's process: %w", err)
	}
	return other, fmt.Sprintf("http://127.0.0.1:%d", int(ready[port])), nil
}

// port is where a server answers.
const port Figure = "port"

// serveUntilTheEnd is the server's process. It ends with its parent.
func serveUntilTheEnd(ctx context.Context, task Task) (Result, error) {
	q, err := serveHTTP(ctx, task, func(Parcel) {})
	if err != nil {
		return nil, err
	}
	at, err := net.ResolveTCPAddr("tcp", strings.TrimSuffix(strings.TrimPrefix(q.root, "http://"), httpapi.Root))
	if err != nil {
		return nil, err
	}
	if err := say(Result{port: float64(at.Port)}); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// memory asks a server how much it holds.
func (q *httpQueue) memory(ctx context.Context, root string) (held float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, root+"/memory", nil)
	if err != nil {
		return 0, err
	}
	err = q.do(request, &held)
	return held, err
}

// heapInUse returns the memory that the process holds, in bytes, without what may be collected.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

// measureStream sends one stream of jobs, and takes the most memory of client and server.
func measureStream(ctx context.Context, task Task) (Result, error) {
	q, err := open(ctx, task, func(Parcel) {})
	if err != nil {
		return nil, err
	}
	took, used, err := measured(task, func() (time.Duration, error) {
		if task.System != SluiceHTTP {
			return enqueueAll(ctx, q, task.Jobs)
		}
		begun := time.Now()
		err := q.enqueue(ctx, task.Jobs)
		return time.Since(begun), err
	})
	if err != nil {
		return nil, err
	}
	held, err := peakMemory()
	if err != nil {
		return nil, err
	}
	result := Result{EnqueueRate: float64(task.Jobs) / took.Seconds(), Memory: held}
	used.into(result, task.Jobs, task)
	return result, q.stop(ctx)
}
