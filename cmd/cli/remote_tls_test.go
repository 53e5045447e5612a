//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/certtest"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/worker"
)

// encrypted is a running `sluice serve` with a certificate of a private authority. Callers reach it through the wire.
type encrypted struct {
	db, secret string // of the store and of the token "w", a worker
	folder     string // with authority.pem, and eu-worker.pem and its key, a certificate for the token "eu-worker"
	workers    certtest.Authority
	wire       *wire
}

// serveEncrypted starts a server.
func serveEncrypted(t *testing.T) *encrypted {
	t.Helper()
	e := &encrypted{folder: t.TempDir()}
	e.db = "sqlite:" + e.file("jobs.db")
	run(t, e.db, "migrate")
	e.secret = regexp.MustCompile(`sluice_\S+`).FindString(run(t, e.db, "tokens", "create", "w", "--role", "worker"))
	run(t, e.db, "tokens", "create", "eu-worker", "--role", "worker")
	newCertificate(t, e.folder)
	e.workers = certtest.New(t, e.file("workers.pem"))
	certtest.Write(t, e.file("eu-worker.pem"), e.file("eu-worker-key.pem"), e.workers.Client(t, "eu-worker"))
	s := start(t, e.db, "serve", "--listen", "127.0.0.1:0", "--tls-cert", e.file("cert.pem"), "--tls-key", e.file("key.pem"), "--tls-client-ca", e.file("workers.pem"))
	e.wire = newWire(t, s.answersAt(t))
	s.says(t, "server started")
	t.Cleanup(func() { _ = s.Wait() }) // the end of the test has killed it
	return e
}

func (e *encrypted) file(name string) string { return filepath.Join(e.folder, name) }

// address is that of the server, with parameters that name files: ca, authority.pem, and so on.
func (e *encrypted) address(parameters ...string) string {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], e.file(parameters[i+1]))
	}
	out := url.URL{Scheme: "https", Host: e.wire.address, RawQuery: query.Encode()}
	return out.String()
}

// wire carries connections to a server. It can cut them, or let them fall silent.
type wire struct {
	address string
	opened  atomic.Int32 // connections
	carried atomic.Int64 // bytes to the server

	mu    sync.Mutex
	conns map[net.Conn]*atomic.Bool // open, of callers; true: silent
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String(), conns: make(map[net.Conn]*atomic.Bool)}
	var carrying sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		w.cut()
		carrying.Wait()
	})
	carrying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			w.opened.Add(1)
			carrying.Go(func() { w.carry(near, to) })
		}
	})
	return w
}

// carry copies bytes until one side closes.
func (w *wire) carry(near net.Conn, to string) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	silent := &atomic.Bool{}
	w.mu.Lock()
	w.conns[near] = silent
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			defer func() { _, _ = near.Close(), far.Close() }()
			bytes := make([]byte, 64<<10)
			for {
				n, err := way[0].Read(bytes)
				if err != nil {
					return
				}
				if silent.Load() && way[1] == near {
					continue
				}
				if _, err := way[1].Write(bytes[:n]); err != nil {
					return
				}
				if way[1] == far {
					w.carried.Add(int64(n))
				}
			}
		})
	}
	both.Wait()
	w.mu.Lock()
	delete(w.conns, near)
	w.mu.Unlock()
}

// cut closes all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for near := range w.conns {
		_ = near.Close()
	}
}

// silence lets no answer through on the open connections, as if half a cable were pulled. Later ones work.
func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, silent := range w.conns {
		silent.Store(true)
	}
}

// TestAGoWorkerWorksOverHTTP2 lets workers and clients work with a server that encrypts. Then it cuts the connection of one, and
// lets that of the other fall silent: a call that times out does not end a connection of HTTP/2, which many calls share.
func TestAGoWorkerWorksOverHTTP2(t *testing.T) {
	t.Parallel()
	e := serveEncrypted(t)
	for name, c := range map[string]struct {
		address, token string
		breaks         func() // the connection
	}{
		"token":       {e.address("ca", "authority.pem"), e.secret, e.wire.cut},
		"certificate": {e.address("ca", "authority.pem", "cert", "eu-worker.pem", "key", "eu-worker-key.pem"), "", e.wire.silence},
	} {
		store, err := remote.Open(t.Context(), c.address, remote.Options{Token: c.token})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := e.wire.opened.Load()
		handled := make(chan int, 100)
		w := worker.New(store, worker.Options{Slots: 20})
		worker.Handle(w, sluice.QueueOf[int](name), func(_ context.Context, job *worker.Job[int]) error {
			handled <- job.Payload
			return nil
		}, worker.QueueOptions{})
		ctx, stop := context.WithCancel(t.Context())
		working := make(chan error, 1)
		go func() { working <- w.Run(ctx) }()
		client := sluice.NewClient(store, sluice.ClientOptions{})
		work := func(jobs int) {
			t.Helper()
			for i := range jobs {
				if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: name, Payload: json.RawMessage(fmt.Sprint(i))}); err != nil {
					t.Fatalf("%s: enqueue: %v", name, err)
				}
			}
			for range jobs {
				<-handled
			}
		}
		work(50)
		if more := e.wire.opened.Load() - before; more != 0 {
			t.Errorf("%s: %d more connections than that which HTTP/2 shares", name, more)
		}
		c.breaks()
		work(1)
		stop()
		if err := <-working; err != nil {
			t.Errorf("%s: the worker ended: %v", name, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// speaker sends requests over HTTP/2.
type speaker struct {
	*testing.T
	client     *http.Client
	url, token string
}

// sends sends a request, and returns the answer when its head has come.
func (s *speaker) sends(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	return s.client.Do(request)
}

// asks sends a request that must be answered over HTTP/2.
func (s *speaker) asks(method, path, kind string, body io.Reader) (answer io.Reader) {
	s.Helper()
	response, err := s.sends(s.Context(), method, path, kind, body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	s.Cleanup(func() { _ = response.Body.Close() })
	if response.ProtoMajor != 2 || response.StatusCode/100 != 2 {
		s.Fatalf("%s %s: %s by %s", method, path, response.Status, response.Proto)
	}
	return response.Body
}

// claim claims a job, and waits for one.
func (s *speaker) claim(ctx context.Context, token string, again bool) (string, error) {
	body := fmt.Sprintf(`{"worker":"h:1:a","queues":["mail"],"wait":"50s","token":"claim of the test %s","again":%t}`, token, again)
	response, err := s.sends(ctx, "POST", "/work/claim", "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// claimAgain sends a claim again until it is answered: the client notices a cut connection when it reads or writes.
func (s *speaker) claimAgain(token string) string {
	s.Helper()
	for until := time.Now().Add(patience); ; {
		text, err := s.claim(s.Context(), token, true)
		if err == nil {
			return text
		}
		if time.Now().After(until) {
			s.Fatal(err)
		}
	}
}

func (s *speaker) enqueue(payload string) {
	s.Helper()
	s.asks("POST", "/jobs", "application/json", strings.NewReader(fmt.Sprintf(`{"queue":"mail","payload":%q}`, payload)))
}

// TestTheAPIAnswersOverHTTP2 claims with a wait, follows the stream, and enqueues while it reads the answers. Then it loses a
// connection with a claim that waits, and another with the answer of a claim.
func TestTheAPIAnswersOverHTTP2(t *testing.T) {
	t.Parallel()
	e := serveEncrypted(t)
	client, at, err := remote.HTTPClient(e.address("ca", "authority.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	s := &speaker{t, client, at, e.secret}

	events := bufio.NewScanner(s.asks("GET", "/stream?topics=signals", "", nil))
	if !events.Scan() {
		t.Fatalf("the stream ends: %v", events.Err())
	}
	answers := make(chan string, 1)
	waits := func(token string) {
		carried := e.wire.carried.Load()
		go func() {
			text, err := s.claim(t.Context(), token, false)
			answers <- fmt.Sprint(text, err)
		}()
		for e.wire.carried.Load() == carried {
			time.Sleep(time.Millisecond)
		}
	}
	waits("first")
	s.enqueue("waited")
	if got := <-answers; !strings.Contains(got, `"waited"`) {
		t.Fatalf("a claim that waits got %s", got)
	}
	for events.Scan() && !strings.Contains(events.Text(), `"queue":"mail"`) {
	}
	if events.Err() != nil {
		t.Fatalf("the stream ends: %v", events.Err())
	}

	lines, send := io.Pipe()
	go func() { _, _ = io.WriteString(send, `{"queue":"other","payload":0}`+"\n") }()
	answered := bufio.NewScanner(s.asks("POST", "/jobs", "application/x-ndjson", lines))
	for i := range 100 {
		if !answered.Scan() || !strings.Contains(answered.Text(), `"id"`) {
			t.Fatalf("line %d: %s %v", i, answered.Text(), answered.Err())
		}
		if _, err := fmt.Fprintf(send, `{"queue":"other","payload":%d}`+"\n", i); err != nil { // after the answer to the line before
			t.Fatal(err)
		}
	}
	_ = send.Close()
	for answered.Scan() && !strings.Contains(answered.Text(), `"stored":101`) {
	}
	if !strings.Contains(answered.Text(), `"stored":101`) {
		t.Errorf("the sum of the lines: %s", answered.Text())
	}
	if opened := e.wire.opened.Load(); opened != 1 {
		t.Errorf("HTTP/2 took %d connections", opened)
	}

	waits("second")
	e.wire.cut()
	if got := <-answers; strings.Contains(got, "jobs") {
		t.Fatalf("a claim whose connection was cut got %s", got)
	}
	s.enqueue("third")
	if got := s.claimAgain("second"); !strings.Contains(got, `"third"`) {
		t.Errorf("the claim that was sent again got %s", got)
	}
	s.enqueue("lost")
	e.wire.silence() // the request arrives, and its answer does not
	lost, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := s.claim(lost, "fourth", false); err == nil {
		t.Errorf("a claim without an answer got %s", got)
	}
	e.wire.cut()
	if got := s.claimAgain("fourth"); !strings.Contains(got, `"lost"`) {
		t.Errorf("the claim without an answer got %s when it was sent again", got)
	}
}

// TestCommandsReachAServerOfAPrivateAuthority names the authority, and the caller's certificate, in profiles.
func TestCommandsReachAServerOfAPrivateAuthority(t *testing.T) {
	t.Parallel()
	e := serveEncrypted(t)
	foreign := certtest.New(t, e.file("other.pem"))
	certtest.Write(t, e.file("foreign.pem"), e.file("foreign-key.pem"), foreign.Client(t, "eu-worker"))
	certtest.Write(t, e.file("ended.pem"), e.file("ended-key.pem"), e.workers.ClientUntil(t, "eu-worker", time.Now().Add(-time.Hour)))
	if err := os.WriteFile(e.file("secret"), []byte(e.secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("[token]\ndb = %q\ntoken = %q\n[certificate]\ndb = %q\n", e.address("ca", "authority.pem"), "@"+e.file("secret"),
		e.address("ca", "authority.pem", "cert", "eu-worker.pem", "key", "eu-worker-key.pem"))
	if err := os.WriteFile(e.file("config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	says := func(want string, code int, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sluice", args...)
		cmd.Env = append(os.Environ(), "SLUICE_DB=", "SLUICE_CONFIG="+e.file("config.toml"))
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || strings.Contains(string(out), "gave up") || cmd.ProcessState.ExitCode() != code {
			t.Errorf("%v: %d\n%s\nwant %d with %q", args, cmd.ProcessState.ExitCode(), out, code, want)
		}
	}
	for _, profile := range []string{"token", "certificate"} {
		says("", 0, "enqueue", profile, `{"to":"ada"}`, "--profile", profile)
		says("completed", 0, "work", profile, "--until-empty", "--profile", profile, "--", "sh", "-c", `cat >&2; echo '{"sent":1}'`)
	}
	says("ready", 0, "probe", "--url", e.address("ca", "authority.pem"))
	trust := "do:  if it is yours, name the file of its certificate in the address: https://HOST?ca=FILE"
	for _, command := range [][]string{{"jobs"}, {"work", "mail", "--", "true"}} {
		from := func(address string) []string { return append([]string{"--db", address}, command...) }
		says(trust, 5, from(e.address())...)
		says(trust, 5, from(e.address("ca", "other.pem"))...)
		for _, caller := range []string{"foreign", "ended"} {
			says("the authority of the server's --tls-client-ca", 5, from(e.address("ca", "authority.pem", "cert", caller+".pem", "key", caller+"-key.pem"))...)
		}
		says("https://HOST?cert=FILE&key=FILE", 4, from(e.address("ca", "authority.pem"))...)
	}
	says(trust, 5, "probe", "--url", e.address())
	says("for another name", 5, "jobs", "--db", strings.Replace(e.address("ca", "authority.pem"), "127.0.0.1", "localhost", 1))
	says("ca: open ", 2, "jobs", "--db", e.address("ca", "none.pem"))
}

// TestCertificatesAreRenewedUnderAnOpenConnection renews the certificate of a caller, and then that of the server.
func TestCertificatesAreRenewedUnderAnOpenConnection(t *testing.T) {
	t.Parallel()
	e := serveEncrypted(t)
	cert, key := e.file("eu-worker.pem"), e.file("eu-worker-key.pem")
	certtest.Write(t, cert, key, e.workers.ClientUntil(t, "eu-worker", time.Now().Add(100*time.Second)))
	client, at, err := remote.HTTPClient(e.address("ca", "authority.pem", "cert", "eu-worker.pem", "key", "eu-worker-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	s := &speaker{T: t, client: client, url: at}
	who := func() string {
		t.Helper()
		text, err := io.ReadAll(s.asks("GET", "/whoami", "", nil))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := who(); !strings.Contains(got, `"token eu-worker"`) {
		t.Errorf("the server knows %s", got)
	}
	run(t, e.db, "tokens", "create", "new", "--role", "viewer")
	certtest.Write(t, cert, key, e.workers.Client(t, "new"))
	for until := time.Now().Add(patience); !strings.Contains(who(), `"token new"`); {
		if time.Now().After(until) {
			t.Fatal("the caller does not show its new certificate")
		}
	}

	newCertificate(t, e.folder)
	opened := e.wire.opened.Load()
	if got := who(); !strings.Contains(got, `"token new"`) || e.wire.opened.Load() != opened {
		t.Errorf("after the server's certificate was renewed: %s by connection %d, want %d", got, e.wire.opened.Load(), opened)
	}
	trusts := func(address string) bool {
		store, err := remote.Open(t.Context(), address, remote.Options{Token: e.secret})
		if err == nil {
			return store.Close() == nil
		}
		if !errors.As(err, new(*remote.CertificateError)) || !errors.Is(err, sluice.ErrUnavailable) {
			t.Fatal(err)
		}
		return false
	}
	for until := time.Now().Add(patience); !trusts(e.address("ca", "authority.pem")); {
		if time.Now().After(until) {
			t.Fatal("the server does not show its new certificate")
		}
	}
	e.wire.cut()
	for until := time.Now().Add(patience); ; { // the client notices a cut connection when it reads or writes
		response, err := s.sends(t.Context(), "GET", "/whoami", "", nil)
		if err == nil {
			_ = response.Body.Close()
		}
		if remote.AsCertificateError(err) != nil {
			break
		}
		if err == nil || time.Now().After(until) {
			t.Fatalf("the next connection of a caller that read the old authority: %v", err)
		}
	}
}

// TestTheAddressOfAServerIsChecked refuses files that cannot be used, before it asks a server.
func TestTheAddressOfAServerIsChecked(t *testing.T) {
	t.Parallel()
	e := &encrypted{folder: t.TempDir()}
	newCertificate(t, e.folder)
	foreign := certtest.New(t, e.file("other.pem")).Client(t, "x")
	certtest.Write(t, e.file("x.pem"), e.file("x-key.pem"), foreign)
	var invalid *sluice.InvalidError
	for _, address := range []string{
		"http://127.0.0.1:1?ca=x", "https://h?ca=", "https://h?ca=a&ca=b", "https://h?cert=x", "https://h?token=secret", "https://h?ca=" + e.file("key.pem"),
		"https://h?cert=" + e.file("cert.pem") + "&key=" + e.file("x-key.pem"),
	} {
		if _, err := remote.Open(t.Context(), address, remote.Options{}); !errors.As(err, &invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := remote.Open(t.Context(), "https://h?ca="+e.file("authority.pem"), remote.Options{Client: http.DefaultClient}); !errors.As(err, &invalid) {
		t.Errorf("a client and an address with files: %v", err)
	}
	db := "sqlite:" + e.file("jobs.db")
	run(t, db, "migrate")
	plain := serve(t, db)
	t.Cleanup(func() { _ = plain.Wait() })
	var mismatch *remote.CertificateError
	if _, err := remote.Open(t.Context(), "https://"+plain.url[len("http://"):], remote.Options{}); !errors.As(err, &mismatch) || !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("a server that does not encrypt: %v", err)
	}
}
