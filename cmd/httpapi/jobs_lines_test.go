package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// aLine is a line of a stream with one complete job.
const aLine = `{"queue":"mail","payload":1}` + "\n"

// answers reads all answers of a stream.
func (s *served) answers(from io.Reader) (all []result) {
	s.Helper()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var got result
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			s.Fatalf("the answer %q is not JSON: %v", lines.Text(), err)
		}
		all = append(all, got)
	}
	return all
}

// A client continues after the last line that has an answer. So a line of which only a part arrived must have no
// answer.
func TestALineOfWhichOnlyAPartCameHasNoAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Idle: 2 * time.Second}})
	conn := s.dial()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	send := func(text string) { must(fmt.Fprintf(conn, "%x\r\n%s\r\n", len(text), text)) }
	must(fmt.Fprintf(conn, "POST %s/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n", httpapi.Root))
	send(aLine + aLine[:10])
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	first, err := lines.ReadString('\n') // arrives although the server has only a part of the next line
	if err != nil {
		t.Fatal(err)
	}
	send(aLine[10:20]) // the rest of the line never arrives
	got := append(s.answers(strings.NewReader(first)), s.answers(lines)...)
	if len(got) != 2 || got[0].Line != 1 || got[0].ID == "" || got[1].Line != 1 || got[1].Error == nil || got[1].Error.Code != "too_slow" {
		t.Errorf("got %+v, want a stored job of line 1, then too_slow after line 1", got)
	}
}

func TestAServerThatEndsDoesNotWaitForAStream(t *testing.T) {
	t.Parallel()
	api := httpapi.New(memory.New(memory.Options{}), httpapi.Options{NoLogin: true})
	s := serveAPI(t, api)
	body, send := io.Pipe()
	defer func() { _ = send.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/jobs", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	go func() { _, _ = io.WriteString(send, aLine) }() // the stream stays open
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	api.Drain()
	got := append(s.answers(strings.NewReader(first)), s.answers(lines)...)
	if len(got) != 2 || got[0].ID == "" || got[1].Line != 1 || got[1].Error == nil || got[1].Error.Code != "draining" {
		t.Errorf("got %+v, want a stored job of line 1, then draining after line 1", got)
	}
}

// The server stores a stream's lines in several batches at once, unless their order matters. Lines with one key must
// keep their order.
func TestAKeyGoesToTheFirstLineThatHasIt(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}})
	const keys, jobs = 50, 4000
	var body strings.Builder
	for i := range jobs {
		fmt.Fprintf(&body, `{"queue":"mail","payload":%d,"key":"k%d"}`+"\n", i, i%keys)
	}
	got := s.answers(strings.NewReader(s.ask("POST", "/jobs", body.String(), "Content-Type", "application/x-ndjson").text))
	if len(got) != jobs+1 || *got[jobs].Done != (httpapi.Tally{Stored: keys, Duplicates: jobs - keys}) {
		t.Fatalf("%d answers, the last %+v", len(got), got[len(got)-1])
	}
	for i, result := range got[:jobs] {
		if result.Line != i+1 || result.ID != got[i%keys].ID || result.Duplicate != (i >= keys) {
			t.Fatalf("got %+v, want the job of the first line with the key", result)
		}
	}
}

// TestATimeoutOfZeroIsRefused sends jobs whose timeout is 0, alone, in a list and in a stream.
func TestATimeoutOfZeroIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	const job = `{"queue":"mail","payload":1,"timeout":"0s"}`
	if p := s.problem(s.ask("POST", "/jobs", job), 422, "invalid"); len(p.Fields) != 1 || p.Fields[0].Field != "timeout" || !strings.Contains(p.Fields[0].Rule, "from 1ms to 30d; leave it out") {
		t.Errorf("the problem is %+v", p)
	}
	for kind, body := range map[string]string{"application/json": "[" + job + "]", "application/x-ndjson": job + "\n"} {
		if r := s.ask("POST", "/jobs", body, "Content-Type", kind); r.status != 200 || !strings.Contains(r.text, "from 1ms to 30d") {
			t.Errorf("%s: %d %s", kind, r.status, r.text)
		}
	}
	if depth := must(s.client.Depth(t.Context(), "mail")); depth.Ready != 0 {
		t.Errorf("%d jobs were stored", depth.Ready)
	}
}
