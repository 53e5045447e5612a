package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

func auditPages() []page {
	return []page{{name: "audit", path: "/audit", title: "Audit", letter: "u", load: loadAudit}}
}

// auditView is the view of /audit.
type auditView struct {
	Entries []auditEntry `json:"entries"`
	// Next is the seq after which older entries follow. 0: these are the last.
	Next int64 `json:"next"`
	// Short says that the search ended at its bound, before the page was full.
	Short bool
	// Exports are the addresses of the entries of the page as files, by their kinds.
	Exports map[string]string
	Head    *auditHead
	Keep    *auditKeep
}

// auditEntry is a line of the audit.
type auditEntry struct{ sluice.AuditEntry }

// Changes are the values that the act replaced: of a new queue, the defaults. What an alert says is its reason.
func (e auditEntry) Changes() []difference {
	switch {
	case e.Object == "alert":
		return nil
	case e.Event == audit.EventBatch:
		return e.outcome()
	case e.Object == "queue" && e.Event == audit.EventChange && len(e.Before) == 0 && len(e.After) > 0:
		defaults, _ := json.Marshal(sluice.DefaultSettings()) // settings can be written
		return differences(defaults, e.After)
	}
	return differences(e.Before, e.After)
}

// outcome lists what became of the jobs of a dispatch cycle, and how long its parts took.
func (e auditEntry) outcome() (found []difference) {
	var done cycle
	if json.Unmarshal(e.After, &done) != nil {
		return differences(nil, e.After)
	}
	for _, part := range []struct {
		name  string
		count int
	}{{"claimed", done.Claimed}, {"dispatched", done.Dispatched}, {"buried", done.Buried}, {"released", done.Released}, {"held", done.Held}} {
		if part.count > 0 {
			found = append(found, difference{Name: part.name, After: draw.Count(part.count)})
		}
	}
	return append(found, difference{Name: "took", After: draw.Duration(done.Took)})
}

// auditHead is the newest seal: whoever keeps it can prove later that no entry was changed.
type auditHead struct {
	Head string    `json:"head"`
	At   time.Time `json:"at"`
}

// auditKeep says how long entries are kept.
type auditKeep struct {
	Notable string `json:"notable"`
	Full    string `json:"full"`
}

// entries reads entries of the audit, which people share for a while. Path is below the API's root.
func (v *visit) entries(ctx context.Context, keep time.Duration, path string, query url.Values) ([]auditEntry, error) {
	var read struct {
		Entries []auditEntry `json:"entries"`
	}
	err := v.getFor(ctx, keep, path, query, &read)
	return read.Entries, err
}

// auditPage is how many entries a page has.
const auditPage = 100

func loadAudit(ctx context.Context, v *visit) (any, error) {
	query, err := v.auditQuery()
	if err != nil {
		return nil, err
	}
	view, keep := auditView{Exports: v.exports()}, cacheFor
	if len(query) > 1 {
		keep = seriesFor // a search may read much
	}
	if err := v.getFor(ctx, keep, "/audit", query, &view); err != nil {
		return nil, err
	}
	view.Short = view.Next > 0 && len(view.Entries) < auditPage
	if v.viewer.bounded() {
		return view, nil
	}
	view.Head, view.Keep = &auditHead{}, &auditKeep{}
	if err := v.get(ctx, "/audit/head", nil, view.Head); err != nil {
		view.Head = nil // nothing is sealed yet, or the store has no chain
	}
	if err := v.get(ctx, "/audit/keep", nil, view.Keep); err != nil {
		view.Keep = nil
	}
	return view, nil
}

// auditQuery makes the query of the entries from the filters of the URL, and notes the command.
func (v *visit) auditQuery() (url.Values, error) {
	query := url.Values{"limit": {strconv.Itoa(auditPage)}}
	command := "sluice audit"
	for _, name := range []string{"object", "name", "job", "actor", "event", "before"} {
		if text := strings.TrimSpace(v.query.Get(name)); text != "" {
			query.Set(name, text)
			command += " --" + name + " " + quoted(text)
		}
	}
	for name, flag := range map[string]string{"from": " --since ", "to": " --until "} {
		at, err := instantOf(v.query.Get(name), time.Now())
		if err != nil {
			return nil, invalid(name, err)
		}
		if !at.IsZero() {
			query.Set(name, at.Format(time.RFC3339))
			command += flag + at.Format(time.RFC3339)
		}
	}
	v.cli(command)
	return query, nil
}

// instantOf reads an instant as people write it: with a zone, in UTC without one, or as a duration before now. People
// share the answers of one minute.
func instantOf(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	ago, err := sluice.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, errors.New("must be an instant such as 2026-12-01 16:00 (UTC), or how long ago, such as 2h")
	}
	return now.Add(-ago).UTC().Truncate(time.Minute), nil
}

// file are the entries of the page.
func (a auditView) file() file {
	f := file{name: "audit", columns: []string{"seq", "at", "actor", "event", "object", "name", "job_id", "from", "to", "reason", "before", "after"}}
	for _, e := range a.Entries {
		line, _ := json.Marshal(e.AuditEntry) // it was read
		job := ""
		if !e.JobID.IsZero() {
			job = e.JobID.String()
		}
		f.lines = append(f.lines, line)
		f.rows = append(f.rows, []string{
			strconv.FormatInt(e.Seq, 10), e.At.UTC().Format(time.RFC3339Nano), e.Actor, string(e.Event), string(e.Object), e.Name, job,
			string(e.From), string(e.To), e.Reason, string(e.Before), string(e.After),
		})
	}
	return f
}

func auditActs() []act {
	return []act{
		{
			name: "verify-audit", label: "Verify the chain", route: "verify-audit", command: "sluice audit verify",
			sentence: "Read the whole audit, and compare it with its seals. This may take long on a big store.",
			noReason: true, done: verified,
		},
		{
			name: "change-audit-retention", label: "Change how long entries are kept", route: "change-audit-retention",
			command:  "sluice audit keep notable={notable} full={full} --reason={reason}",
			sentence: "Change how long the store keeps audit entries. Older ones are deleted for good.", danger: true, needsReason: true,
			fields: []field{
				{name: "notable", label: "Notable entries", hint: "such as 730d; 0s: for ever; empty: as it is"},
				{name: "full", label: "Full entries", hint: "such as 30d; 0s: for ever; empty: as it is"},
			},
		},
	}
}

// verified says what a proof found.
func verified(a answered) string {
	if a["intact"] == true {
		return "The chain is intact: " + asText(a["entries"]) + " entries are as they were sealed"
	}
	return "THE AUDIT WAS CHANGED: see `sluice audit verify`"
}
