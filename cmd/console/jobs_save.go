package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

const (
	// mostSaved is the most jobs in a file of all that match, and savedAtOnce how many are read at a time.
	mostSaved   = 100_000
	savedAtOnce = "200"
	// saveTime is the longest time for such a file.
	saveTime = 10 * time.Minute
)

// saveAll sends all jobs that match the filter of the page as a file. It reads them part by part, as the browser takes them, so
// that nobody holds them all. A file that reaches the limit has a last line with the place of the next job. If a part cannot be
// read, the answer breaks off, which browsers tell.
func (c *Console) saveAll(w http.ResponseWriter, r *http.Request, v *visit, kind string) {
	ctx, stop := context.WithTimeout(r.Context(), saveTime)
	defer stop()
	part, err := v.nextPart(ctx, v.query.Get("after"))
	if err != nil {
		c.refuse(w, r, v, err)
		return
	}
	if !part.file().begin(w, kind) {
		return
	}
	head := [][]string{part.file().columns}
	for saved := len(part.Jobs); ; saved += len(part.Jobs) {
		full := saved >= c.mostSaved && part.Next != ""
		if !sendPart(w, part, kind, full, head...) || full || part.Next == "" {
			return
		}
		head = nil
		if part, err = v.nextPart(ctx, part.Next); err != nil || c.ends() {
			panic(http.ErrAbortHandler)
		}
	}
}

// nextPart reads the jobs of the page's filter from a place on. Nobody shares the answer.
func (v *visit) nextPart(ctx context.Context, place string) (part jobList, err error) {
	query := url.Values{"limit": {savedAtOnce}}
	for name, value := range map[string]string{"where": v.where(), "cursor": place} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if v.query.Get("sort") == "oldest" {
		query.Set("oldest_first", "true")
	}
	text, err := v.caller.send(ctx, http.MethodGet, "/jobs", query, nil)
	if err != nil {
		return part, err
	}
	part.Columns = v.columns()
	return part, json.Unmarshal(text, &part)
}

// sendPart sends jobs. Full says that others follow that the file has no room for.
func sendPart(w http.ResponseWriter, part jobList, kind string, full bool, head ...[]string) bool {
	f := part.file()
	if full {
		last, _ := json.Marshal(map[string]any{"more": true, "cursor": part.Next}) // texts
		f.rows, f.lines = append(f.rows, []string{"more", part.Next}), append(f.lines, last)
	}
	var out bytes.Buffer
	f.write(&out, kind, head...)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) // a recorder of tests has none
	_, err := w.Write(out.Bytes())
	return err == nil
}

// ends reports whether the process ends soon.
func (c *Console) ends() bool {
	select {
	case <-c.draining:
		return true
	default:
		return false
	}
}
