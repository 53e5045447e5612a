package console_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

// firstLoad is the upper limit of the bytes that a browser without a cache loads for a page with all its files.
const firstLoad = 150_000

func TestTheFirstLoadOfEachPageIsSmall(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	for range 100 {
		s.enqueue(sluice.NewJob{Queue: "mail"})
	}
	modules, err := os.ReadDir("static/js")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/jobs", "/queues", "/queues/mail", "/waves", "/store"} {
		page, size := s.sent(path)
		linked := regexp.MustCompile(`/static/[0-9a-f]+/[^"]+`).FindAllString(page, -1)
		base := regexp.MustCompile(`/static/[0-9a-f]+/js/`).FindString(page)
		files := make(map[string]bool)
		for _, one := range linked {
			files[one] = true
		}
		for _, module := range modules {
			files[base+module.Name()] = true
		}
		if len(files) < len(modules)+5 {
			t.Errorf("%s: only %d files are known", path, len(files))
		}
		for one := range files {
			_, more := s.sent(one)
			size += more
		}
		if size > firstLoad {
			t.Errorf("%s: the first load has %d bytes, want at most %d", path, size, firstLoad)
		}
		t.Logf("%s: %d bytes", path, size)
	}
}

// sent returns the compressed body of a path as the server sends it, and its size.
func (s *site) sent(path string) (string, int) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip") // an explicit header stops the client from decompressing the body
	response, err := s.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %v", path, response.Status, err)
	}
	return string(text), len(text)
}
