//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/store/memory"
)

// dev is a running `sluice dev`.
type dev struct {
	*exec.Cmd
	url, store string
	said       *bufio.Reader // the rest of its standard output
	stderr     bytes.Buffer
}

// startDev starts `sluice dev` in a temporary folder, and waits until it prints its address.
func startDev(t *testing.T, args ...string) *dev {
	t.Helper()
	d := &dev{Cmd: exec.CommandContext(t.Context(), "sluice", append([]string{"dev", "--listen", "127.0.0.1:0"}, args...)...)}
	d.Env = append(os.Environ(), "SLUICE_DB=", "TMPDIR="+t.TempDir())
	d.Stderr = &d.stderr
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	d.said = bufio.NewReader(out)
	for _, line := range []struct {
		into    *string
		pattern string
	}{{&d.url, `^console +(http://\S+/)$`}, {nil, `^API `}, {&d.store, `^store +(.+), `}} {
		text, err := d.said.ReadString('\n')
		found := regexp.MustCompile(line.pattern).FindStringSubmatch(strings.TrimSpace(text))
		if found == nil {
			t.Fatalf("it says %q, want %s: %v\n%s", text, line.pattern, err, d.stderr.String())
		}
		if line.into != nil {
			*line.into = found[1]
		}
	}
	return d
}

// end interrupts `sluice dev`, and returns its standard error.
func (d *dev) end(t *testing.T) string {
	t.Helper()
	if err := d.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	return d.stderr.String()
}

// shows waits until the answer to a path contains every part.
func (d *dev) shows(t *testing.T, path string, parts ...string) {
	t.Helper()
	lacks := func() (part, text string) {
		status, text := ask(t, d.url+path)
		for _, part := range parts {
			if status != 200 || !strings.Contains(text, part) {
				return part, text
			}
		}
		return "", ""
	}
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		part, text := lacks()
		if part == "" {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("/%s never showed %s:\n%s", path, part, text)
		}
	}
}

func TestDevShowsEveryKindOfThing(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	for path, parts := range map[string][]string{
		"queues?limit=100":                 {`"paused":"true"`, `"fair":"true"`, `"limits":"bank"`, `"engine":"local"`},
		"jobs?where=state:scheduled":       {`"queue":"renewals"`},
		"jobs?where=state:retrying":        {`"error":"`},
		"jobs?where=queue:reports":         {`"state":"claimed"`},
		"jobs?where=queue:orders":          {`"dispatched_at"`},
		"dead/groups":                      {`the mailbox`, `is closed`},
		"tenants":                          {`"tier":"FREE"`, `"tier":"PRO"`, `"tier":"ENTERPRISE"`, `"paused":true`},
		"limits/host":                      {`"per_key":true`, `"key":"busy.example"`},
		"schedules":                        {`"every":"1m"`, `"paused":true`, `"cron":"0 2 * * *"`},
		"batches":                          {`"total":80`},
		"flows":                            {`"name":"statements"`},
		"holds":                            {`"by":"producer"`, `wrong account`},
		"operations":                       {`"kind":"cancel"`, `"state":"running"`},
		"alerts":                           {`"state":"firing"`, `"by":"bob"`},
		"queues/payments/settings/history": {`a zero too many`},
		"holders":                          {`"role":"worker"`, `"role":"upkeep"`, `"role":"dispatcher"`},
	} {
		d.shows(t, "api/v1/"+path, parts...)
	}
	d.shows(t, "", "<h1>Overview</h1>", `acme</a> <span class="tag">noisy</span>`)
	file := strings.TrimPrefix(d.store, "sqlite:")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if said := d.end(t); said != "ended; the data is gone\n" {
		t.Errorf("it says %q", said)
	}
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func TestInterruptEndsTheFillOfDev(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := cli.OpenShop(interrupted, store); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := cli.OpenShop(t.Context(), store); err != nil {
		t.Errorf("nothing was stored before, and yet: %v", err)
	}
}

func TestDevRunsNoJobsOfAStoreInUse(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "real.db")
	sluice := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sluice", args...)
		cmd.Env = append(os.Environ(), "SLUICE_DB="+db)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	id, err := sluice("enqueue", "payments", "{}", "--migrate")
	if err != nil {
		t.Fatal(id)
	}
	said, err := sluice("dev", "--listen", "127.0.0.1:0")
	if err == nil || !strings.Contains(said, "work of its own") || !strings.Contains(said, "--empty") {
		t.Errorf("it ends with %v and says %q", err, said)
	}
	if queues, _ := sluice("queues"); strings.Contains(queues, "refunds") {
		t.Errorf("the shop was opened:\n%s", queues)
	}
	if job, _ := sluice("job", strings.TrimSpace(id)); !strings.Contains(job, "attempts      0") {
		t.Errorf("the job was run:\n%s", job)
	}
}

func TestDevWithoutTheShopSaysWhatToTry(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--empty", "--db", "sqlite:"+filepath.Join(t.TempDir(), "my jobs.db"))
	var lines []string
	for {
		line, err := d.said.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "Ctrl-C") {
			break
		}
		if strings.HasPrefix(line, "  ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) != 3 {
		t.Fatalf("it says %q", lines)
	}
	lines[2] = strings.Replace(lines[2], " work ", " work --until-empty ", 1) // without the flag, the worker would wait for more jobs
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", strings.Join(lines, "\n")).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", lines, err, out)
	}
	_, text := ask(t, d.url+"api/v1/jobs")
	var page struct {
		Jobs []struct{ Queue, State string }
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Jobs) != 1 || page.Jobs[0].State != "completed" {
		t.Errorf("the job is not completed: %v\n%s", err, text)
	}
	fillBySamples(t, d)
	if said := d.end(t); !strings.Contains(said, "the data is in sqlite:") {
		t.Errorf("it says %q", said)
	}
}

// fillBySamples presses the button of the console that opens the shop, after presses of somebody who left the page at
// once.
func fillBySamples(t *testing.T, d *dev) {
	t.Helper()
	for _, stay := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond} {
		left, leave := context.WithTimeout(t.Context(), stay)
		request, err := http.NewRequestWithContext(left, http.MethodPost, d.url+"samples", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
		}
		leave()
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"samples", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("the button answers with %s: %v\n%s\n%s", answer.Status, err, text, d.stderr.String())
	}
	d.shows(t, "api/v1/queues?limit=100", `"name":"payments"`, `"name":"mail"`)
	d.shows(t, "api/v1/jobs?where=queue:mails", `"state":"completed"`)
}
