package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/certtest"
	"github.com/sluice-queue/sluice/internal/clienttest"
	"github.com/sluice-queue/sluice/internal/debian"
)

// proxies are the proxies of the guide, and how to start each with a file of settings.
var proxies = map[string]struct {
	program, packaged string
	settings          func(guide, folder string) string
	arguments         func(settings, folder string) []string
}{
	"nginx": {
		"nginx", "nginx-light",
		func(guide, folder string) string {
			return "daemon off; pid " + folder + "/pid; error_log stderr;\nevents {}\nhttp {\naccess_log off; client_body_temp_path " + folder + "/body;" +
				" proxy_temp_path " + folder + "/proxy; fastcgi_temp_path " + folder + "/f; uwsgi_temp_path " + folder + "/u; scgi_temp_path " + folder + "/s;\n" + guide + "}\n"
		},
		func(settings, folder string) []string { return []string{"-p", folder, "-e", "stderr", "-c", settings} },
	},
	"caddy": {
		"caddy", "caddy",
		func(guide, folder string) string {
			return "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + guide
		},
		func(settings, _ string) []string {
			return []string{"run", "--adapter", "caddyfile", "--config", settings}
		},
	},
}

// TestProxiesOfTheGuide puts each proxy of the guide, with the settings of the guide, between clients and a server.
func TestProxiesOfTheGuide(t *testing.T) {
	t.Parallel()
	program := clienttest.Build(t)
	for name, proxy := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(proxy.program); err != nil {
				if err := debian.Install(proxy.packaged); err != nil {
					t.Fatalf("there is no %s, which the test needs: %v", proxy.program, err)
				}
			}
			env := clienttest.Serve(t, program, "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"), "--behind-proxy", "--base", "/sluice")
			folder := t.TempDir()
			authority := certtest.New(t, filepath.Join(folder, "authority.pem"))
			certtest.Write(t, filepath.Join(folder, "jobs.pem"), filepath.Join(folder, "jobs.key"), authority.Server(t, "jobs.example.com"))
			port := freePort(t)
			settings := filepath.Join(folder, "settings")
			write(t, settings, proxy.settings(fromGuide(t, name, folder, port, addressOf(env)), folder))
			start(t, proxy.program, proxy.arguments(settings, folder)...)
			c := &caller{T: t, url: fmt.Sprintf("https://127.0.0.1:%s/sluice", port), token: clienttest.Value(env, "SLUICE_TOKEN")}
			c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: "jobs.example.com"}}}
			c.reaches()
			c.leaves()
			c.waits()
			c.streams()
			c.sendsMuch()
			c.signsIn(port)
		})
	}
}

// signsIn signs in as a person with a browser, which sends the Origin of the page with each form.
func (c *caller) signsIn(port string) {
	c.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.Fatal(err)
	}
	transport := c.client.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	browser := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	site := "https://jobs.example.com:" + port
	for origin, want := range map[string]int{"https://evil.example": http.StatusForbidden, site: http.StatusSeeOther} {
		form := url.Values{"token": {c.token}, "next": {"/sluice/jobs"}}
		request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, site+"/sluice/login", strings.NewReader(form.Encode()))
		if err != nil {
			c.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {origin}}
		response, err := browser.Do(request)
		if err != nil {
			c.Fatal(err)
		}
		_ = response.Body.Close()
		if to := response.Header.Get("Location"); response.StatusCode != want || want == http.StatusSeeOther && to != "/sluice/jobs" {
			c.Errorf("a form of %s: %s to %q, want %d", origin, response.Status, to, want)
		}
	}
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, site+"/sluice/api/v1/whoami", http.NoBody)
	if err != nil {
		c.Fatal(err)
	}
	response, err := browser.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
		c.Errorf("the session: %s", response.Status)
	}
}

// fromGuide returns a proxy's settings from the guide, with the test's names in them.
func fromGuide(t *testing.T, proxy, folder, port, server string) string {
	t.Helper()
	guide, err := os.ReadFile("../docs/guide/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + proxy + "\n(.*?)```").FindSubmatch(guide)
	if found == nil {
		t.Fatalf("the guide has no settings of %s", proxy)
	}
	out := string(found[1])
	for before, after := range map[string]string{
		"/etc/ssl": folder, "listen 443 ssl": "listen 127.0.0.1:" + port + " ssl", "127.0.0.1:7400": server,
		"jobs.example.com {": "https://jobs.example.com:" + port + " {",
	} {
		out = strings.ReplaceAll(out, before, after)
	}
	return out
}

// caller sends requests through a proxy.
type caller struct {
	*testing.T
	client     *http.Client
	url, token string
}

// do sends a request.
func (c *caller) do(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	request.Host, request.Header = "jobs.example.com", header
	return c.client.Do(request)
}

// of returns the headers of a request with a body: its type and the token.
func (c *caller) of(kind string) http.Header {
	return http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {kind}}
}

// send sends a request that must get an answer.
func (c *caller) send(ctx context.Context, method, path, kind string, body io.Reader) (status int, answer io.Reader) {
	c.Helper()
	response, err := c.do(ctx, method, path, c.of(kind), body)
	if err != nil {
		c.Fatalf("%s %s: %v", method, path, err)
	}
	c.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}

// reaches waits until the proxy forwards requests, and checks that the server asks for a token.
func (c *caller) reaches() {
	c.Helper()
	for ended := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		response, err := c.do(c.Context(), "GET", "/jobs", http.Header{}, nil)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusUnauthorized {
				return
			}
			err = fmt.Errorf("status %s", response.Status)
		}
		if time.Now().After(ended) {
			c.Fatalf("a request without a token: %v", err)
		}
	}
}

const claim = `{"worker":"w","queues":["waited"],"wait":"50s"}`

// leaves sends a claim that waits, and disconnects. The next claim must then get the next job.
func (c *caller) leaves() {
	c.Helper()
	ctx, leave := context.WithTimeout(c.Context(), time.Second)
	defer leave()
	response, err := c.do(ctx, "POST", "/work/claim", c.of("application/json"), strings.NewReader(claim))
	if err == nil {
		_ = response.Body.Close()
		c.Fatalf("a claim without a job: %s", response.Status)
	}
}

// waits sends a claim that waits until a job comes.
func (c *caller) waits() {
	c.Helper()
	answer := make(chan string, 1)
	go func() {
		_, body := c.send(c.Context(), "POST", "/work/claim", "application/json", strings.NewReader(claim))
		text, _ := io.ReadAll(body)
		answer <- string(text)
	}()
	status, _ := c.send(c.Context(), "POST", "/jobs", "application/json", strings.NewReader(`{"queue":"waited","payload":"through the proxy"}`))
	if status != http.StatusCreated {
		c.Fatalf("enqueue: status %d", status)
	}
	if text := <-answer; !strings.Contains(text, "through the proxy") {
		c.Fatalf("the claim got %s", text)
	}
}

// streams reads the server's events as they happen.
func (c *caller) streams() {
	c.Helper()
	ctx, stop := context.WithTimeout(c.Context(), 30*time.Second)
	defer stop()
	_, events := c.send(ctx, "GET", "/stream?topics=overview", "", nil)
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			return
		}
	}
	c.Fatalf("no event came through the proxy: %v", lines.Err())
}

// sendsMuch sends a stream that is longer than a proxy's buffer.
func (c *caller) sendsMuch() {
	c.Helper()
	line := `{"queue":"stream","payload":"` + strings.Repeat("x", 1000) + "\"}\n"
	_, body := c.send(c.Context(), "POST", "/jobs?answers=refused", "application/x-ndjson", io.LimitReader(&repeated{line: line}, int64(20_000*len(line))))
	text, err := io.ReadAll(body)
	if err != nil || !bytes.Contains(text, []byte(`"stored":20000`)) {
		c.Fatalf("the stream got %.500s, %v", text, err)
	}
}

// repeated reads the same line again and again.
type repeated struct {
	line string
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], r.line[r.at:])
		n, r.at = n+k, (r.at+k)%len(r.line)
	}
	return n, nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts a program until the end of the test. If the test fails, it shows what the program said.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, &said)
		}
	})
}

// addressOf returns host and port of the server.
func addressOf(env []string) string {
	return strings.TrimSuffix(strings.TrimPrefix(clienttest.Value(env, "SLUICE_URL"), "http://"), "/sluice")
}
