//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestServeTellsItsClientsThatItEnds sends SIGTERM to a server while a claim waits, a client follows topics, and a stream of
// jobs is half sent. The claim gets no job, both streams are told, and the server ends before its time is over.
func TestServeTellsItsClientsThatItEnds(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	const grace = 2 * time.Minute // no client is cut off within it
	s := serve(t, db, "--grace", grace.String())
	s.becomes(t, 200, "upkeep")
	claimed, sent := make(chan string, 1), make(chan struct{})
	isSent := sync.OnceFunc(func() { close(sent) })
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { isSent() }})
	go func() {
		defer isSent()
		status, body := send(traced, t, "POST", s.url+"/api/v1/work/claim", "application/json", strings.NewReader(`{"worker":"h:1:a","queues":["none"],"wait":"60s"}`))
		text, err := io.ReadAll(body)
		claimed <- fmt.Sprint(status, " ", string(text), " ", err)
	}()
	<-sent // the server accepts connections in their order: it has this one before the next
	_, following := send(t.Context(), t, "GET", s.url+"/api/v1/stream?topics=alerts", "", nil)
	events := bufio.NewReader(following)
	if begun, err := events.ReadString('\n'); err != nil || !strings.Contains(begun, "the stream begins") {
		t.Fatalf("%q, %v", begun, err)
	}
	body, half := io.Pipe()
	go func() { _, _ = io.WriteString(half, `{"queue":"mail","payload":1}`+"\n"+`{"queue":"mail"`) }() // the rest never comes
	_, storing := send(t.Context(), t, "POST", s.url+"/api/v1/jobs?answers=all", "application/x-ndjson", body)
	answers := bufio.NewReader(storing)
	if stored, err := answers.ReadString('\n'); err != nil || !strings.Contains(stored, `"line":1`) || !strings.Contains(stored, `"id":`) {
		t.Fatalf("%q, %v", stored, err)
	}
	from := time.Now()
	s.terminate(t)
	got := <-claimed
	if late := strings.HasPrefix(got, "503 ") && strings.Contains(got, `"code":"draining"`); !late && !strings.HasPrefix(got, `200 {"jobs":[]`) { // the signal may come before the claim
		t.Errorf("the claim that waits got %s, want no job", got)
	}
	for name, c := range map[string]struct {
		from  io.Reader
		wants string
	}{
		"the stream of topics": {events, "event: end\n"}, "the stream of jobs": {answers, `"code":"draining"`},
	} {
		if rest, err := io.ReadAll(c.from); err != nil || !strings.Contains(string(rest), c.wants) {
			t.Errorf("%s ends with %q, %v; want %s", name, rest, err, c.wants)
		}
	}
	_ = half.Close()
	if rest := s.ends(t, 0); !strings.Contains(rest, "server stopped") {
		t.Errorf("it says:\n%s", rest)
	}
	if took := time.Since(from); took >= grace {
		t.Errorf("the server took %s to end", took)
	}
	if stored := run(t, db, "jobs", "--queue", "mail", "-o", "jsonl"); strings.Count(stored, "\n") != 1 {
		t.Errorf("the store has\n%s", stored)
	}
}

// send sends a request, and returns its status and its body as soon as the answer begins.
func send(ctx context.Context, t *testing.T, method, url, kind string, body io.Reader) (int, io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Error(err)
		return 0, http.NoBody
	}
	request.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, http.NoBody
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}
