package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/presence"
)

// mark is an instant to point at in a chart: a change of settings, a deploy, or an alert.
type mark struct {
	At int64 `json:"at"`
	// Kind is setting, deploy or alert.
	Kind string `json:"kind"`
	Text string `json:"text"`
	// URL is the page that says more.
	URL string `json:"-"`
}

// Time is the instant, for a template.
func (m mark) Time() time.Time { return time.Unix(m.At, 0) }

// marks are what happened around the figures of a queue, or of all queues if it is empty: the changes of settings that the
// caller has read, deploys among the processes, and alerts. The oldest comes first.
func (v *visit) marks(ctx context.Context, queue string, changes []auditEntry) ([]mark, error) {
	all := v.settingMarks(changes)
	if !v.viewer.bounded() {
		holders, err := v.holders(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, v.deployMarks(queue, holders)...)
		alerts, err := v.entries(ctx, seriesFor, "/audit", url.Values{"object": {"alert"}, "limit": {"100"}})
		if err != nil {
			return nil, err
		}
		all = append(all, v.alertMarks(queue, alerts)...)
	}
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

// settingMarks are the changes of the settings of queues.
func (v *visit) settingMarks(entries []auditEntry) (marks []mark) {
	for _, e := range entries {
		if e.Object != "queue" || len(e.Before) == 0 {
			continue
		}
		text := e.Name + ": " + string(e.Event)
		for _, d := range settingDifferences(e.Changes()) {
			text += fmt.Sprintf(", %s %s → %s", d.Name, or(d.Before, "none"), or(d.After, "none"))
		}
		marks = append(marks, mark{e.At.Unix(), "setting", strings.TrimSpace(text + " (" + e.Actor + ")"), v.console.url("/audit", "object", "queue", "name", e.Name)})
	}
	return marks
}

// deployMarks are the starts of versions: of each, the first start among the processes that live. A process that has ended
// leaves no version behind, so an older deploy has no mark.
func (v *visit) deployMarks(queue string, holders []presence.Holder) (marks []mark) {
	for version, d := range deploysOf(queue, holders) {
		marks = append(marks, mark{d.at.Unix(), "deploy", fmt.Sprintf("version %s started first here, and %s of its processes work now", version, strconv.Itoa(d.processes)), v.console.url("/workers")})
	}
	return marks
}

// deploy is a version among the processes that live: when the first of them began, and how many they are.
type deploy struct {
	at        time.Time
	processes int
}

// deploysOf are the versions that serve a queue, or any queue if it is empty.
func deploysOf(queue string, holders []presence.Holder) map[string]deploy {
	first := make(map[string]deploy)
	for _, h := range holders {
		if h.Version == "" || len(h.Queues) == 0 || queue != "" && !slices.Contains(h.Queues, queue) {
			continue
		}
		d := first[h.Version]
		if d.processes++; d.at.IsZero() || h.Started.Before(d.at) {
			d.at = h.Started
		}
		first[h.Version] = d
	}
	return first
}

// alertMarks are alerts that fired, or were over.
func (v *visit) alertMarks(queue string, entries []auditEntry) (marks []mark) {
	for _, e := range entries {
		if e.Event != audit.EventAlertFires && e.Event != audit.EventAlertResolves {
			continue
		}
		rule, of, _ := strings.Cut(e.Name, "/") // as alert.RuleName writes it
		if queue != "" && of != "" && of != queue {
			continue
		}
		marks = append(marks, mark{e.At.Unix(), "alert", string(e.Event) + ": " + e.Name, v.console.url("/alerts/"+rule, "queue", of)})
	}
	return marks
}
