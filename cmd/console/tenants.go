package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

func tenantPages() []page {
	return []page{
		{name: "tenants", path: "/tenants", title: "Tenants", letter: "t", load: loadTenants},
		{name: "tenant", path: "/tenants/{tenant...}", title: "Tenant", load: loadTenant},
	}
}

// tenantRow is a tenant in a table.
type tenantRow struct {
	Name         string           `json:"name"`
	Tier         string           `json:"tier"`
	Version      int64            `json:"version"`
	ChangedAt    time.Time        `json:"changed_at"`
	ChangedBy    string           `json:"changed_by"`
	Reason       string           `json:"reason"`
	InFlight     *int             `json:"in_flight"`
	InFlightMore bool             `json:"in_flight_or_more"`
	Waiting      *int             `json:"waiting"`
	WaitingMore  bool             `json:"waiting_or_more"`
	Limits       []tenancy.Limits `json:"limits"`
	TierLimits   []tenancy.Limits `json:"tier_limits"`

	Due   int
	Noisy bool
	// Share is how much of all jobs in flight it has, and Granted how much its weights grant it now, from 0 to 1.
	Share, Granted float64
	// Waited is how long 95 % of its jobs waited at most that started of late. 0: none started.
	Waited time.Duration
	// AtLimit is for how long it was at its concurrency in this hour and the one before, at least.
	AtLimit time.Duration
	// Rows are its jobs by queue.
	Rows []tenantUse
}

// tenantUse is a tenant's jobs in a queue.
type tenantUse struct {
	Queue string
	Due   int
	sluice.TenantFlow
}

// Filter chooses the tenant's jobs.
func (t tenantRow) Filter() string { return "tenant:" + filterValue(t.Name) }

// Special are the limits in single queues: the tenant's own, and its tier's.
func (t tenantRow) Special() []tenancy.Limits {
	return slices.DeleteFunc(slices.Concat(t.Limits, t.TierLimits), func(l tenancy.Limits) bool { return l.Queue == "" })
}

// general returns the limits in every queue: the tenant's own, else its tier's.
func (t tenantRow) general() (found tenancy.Limits) {
	for _, all := range [][]tenancy.Limits{t.Limits, t.TierLimits} {
		for _, l := range all {
			if l.Queue != "" {
				continue
			}
			if found.Concurrency == nil {
				found.Concurrency = l.Concurrency
			}
			if found.Rate == nil {
				found.Rate = l.Rate
			}
			if found.Weight == nil {
				found.Weight = l.Weight
			}
			found.Paused = found.Paused || pausedNow(l)
		}
	}
	return found
}

// Concurrency is the most jobs in flight. 0: no limit of its own.
func (t tenantRow) Concurrency() int {
	if c := t.general().Concurrency; c != nil {
		return *c
	}
	return 0
}

// Rate is the rate in every queue. Empty: none of its own.
func (t tenantRow) Rate() string {
	if r := t.general().Rate; r != nil && !r.IsZero() {
		return r.String()
	}
	return ""
}

// Weight is the share in every queue. 0: the usual one.
func (t tenantRow) Weight() int {
	if w := t.general().Weight; w != nil {
		return *w
	}
	return 0
}

// Paused reports whether the tenant is paused in every queue.
func (t tenantRow) Paused() bool { return t.general().Paused }

// pausedNow reports whether a pause has not ended.
func pausedNow(l tenancy.Limits) bool {
	return l.Paused && (l.PausedUntil.IsZero() || l.PausedUntil.After(time.Now()))
}

// PausedIn are the queues in which alone the tenant is paused.
func (t tenantRow) PausedIn() (queues []string) {
	for _, l := range t.Limits {
		if l.Queue != "" && pausedNow(l) {
			queues = append(queues, l.Queue)
		}
	}
	return queues
}

// Flight is the jobs in flight, where they are known.
func (t tenantRow) Flight() int {
	if t.InFlight != nil {
		return *t.InFlight
	}
	return 0
}

// LimitWords describes limits.
func (t tenantRow) LimitWords(l tenancy.Limits) string {
	var words []string
	if l.Concurrency != nil {
		words = append(words, "concurrency "+zeroAs(strconv.Itoa(*l.Concurrency)))
	}
	if l.Rate != nil {
		words = append(words, "rate "+zeroAs(l.Rate.String()))
	}
	if l.Burst != nil {
		words = append(words, "burst "+strconv.Itoa(*l.Burst))
	}
	if l.Weight != nil {
		words = append(words, "weight "+strconv.Itoa(*l.Weight))
	}
	if l.Paused {
		words = append(words, "paused")
	}
	return or(strings.Join(words, ", "), "nothing")
}

func zeroAs(text string) string {
	if text == "0" {
		return "without limit"
	}
	return text
}

// tierRow is a tier with its limits.
type tierRow struct {
	tenancy.Tier
	Limits []tenancy.Limits `json:"limits"`
}

// LimitWords describes limits.
func (t tierRow) LimitWords(l tenancy.Limits) string { return tenantRow{}.LimitWords(l) }

// tenantList is the view of /tenants.
type tenantList struct {
	Tenants []tenantRow
	Tiers   []tierRow
	Next    string
	Orders  []choice
	// Shares is nil without jobs in flight.
	Shares *shares
}

func (l tenantList) charts() []chart {
	if l.Shares == nil {
		return nil
	}
	return []chart{l.Shares.Chart}
}

// tenantLoads reads the jobs of tenants in flight and due.
func (v *visit) tenantLoads(ctx context.Context) (map[string]*tenantRow, int, error) {
	var read struct {
		Queues []use `json:"queues"`
	}
	if err := v.get(ctx, "/use", url.Values{"tenants": {"200"}}, &read); err != nil {
		return nil, 0, err
	}
	by, all := make(map[string]*tenantRow), 0
	of := func(name string) *tenantRow {
		if by[name] == nil {
			by[name] = &tenantRow{Name: name, InFlight: new(int)}
		}
		return by[name]
	}
	for _, u := range read.Queues {
		for _, t := range u.Tenants {
			*of(t.Tenant).InFlight += t.InFlight
			of(t.Tenant).Rows = append(of(t.Tenant).Rows, tenantUse{Queue: u.Queue, TenantFlow: t})
			all += t.InFlight
		}
	}
	var ahead forecastView
	if err := v.getFor(ctx, seriesFor, "/forecast", url.Values{"tenants": {"true"}}, &ahead); err != nil {
		return nil, 0, err
	}
	for _, q := range ahead.Queues {
		for name, jobs := range q.Due.Tenants {
			t := of(name)
			t.Due += jobs
			i := slices.IndexFunc(t.Rows, func(r tenantUse) bool { return r.Queue == q.Queue })
			if i < 0 {
				i, t.Rows = len(t.Rows), append(t.Rows, tenantUse{Queue: q.Queue})
			}
			t.Rows[i].Due = jobs
		}
	}
	delete(by, "")
	return by, all, nil
}

func loadTenants(ctx context.Context, v *visit) (any, error) {
	v.cli("sluice tenants")
	v.cli("sluice tiers")
	query := url.Values{"limit": {"100"}}
	after := v.query.Get("after")
	if after != "" {
		query.Set("after", after)
	}
	var read struct {
		Tenants []tenantRow `json:"tenants"`
	}
	if err := v.get(ctx, "/tenants", query, &read); err != nil {
		return nil, err
	}
	var tiers struct {
		Tiers []tierRow `json:"tiers"`
	}
	if err := v.get(ctx, "/tiers", nil, &tiers); err != nil {
		return nil, err
	}
	by, all, err := v.tenantLoads(ctx)
	if err != nil {
		return nil, err
	}
	view := tenantList{Tenants: read.Tenants, Tiers: tiers.Tiers}
	for i := range view.Tenants {
		t := &view.Tenants[i]
		if known := by[t.Name]; known != nil {
			t.Due, t.Rows = known.Due, known.Rows
			delete(by, t.Name)
		}
		t.Noisy = noisy(t.Flight(), all)
	}
	if n := len(read.Tenants); n == 100 {
		view.Next = v.console.url("/tenants", "after", read.Tenants[n-1].Name)
	} else if after == "" { // tenants that nothing is said of
		for _, t := range by {
			t.Noisy = noisy(t.Flight(), all)
			view.Tenants = append(view.Tenants, *t)
		}
	}
	shareOut(view.Tenants)
	if all > 0 {
		drawn := sharesOf(view.Tenants)
		view.Shares = &drawn
	}
	if err := v.addWaits(ctx, view.Tenants); err != nil {
		return nil, err
	}
	order(view.Tenants, v.query.Get("sort"))
	view.Orders = v.orders()
	return view, nil
}

// tenantPage is the view of a tenant.
type tenantPage struct {
	tenantRow
	Jobs    []jobRow
	Windows []choice
	Charts  []chart
	Entries []auditEntry
	// AtLimitToday is for how long the tenant was at its concurrency in the last 24 h, at least. Nil: nobody has looked.
	AtLimitToday *time.Duration
}

func (t tenantPage) charts() []chart { return t.Charts }

func loadTenant(ctx context.Context, v *visit) (any, error) {
	name := v.pathOf("tenant")
	v.page.title = name
	v.cli("sluice tenants")
	v.cli("sluice jobs " + quoted("tenant:"+name+" state:claimed,dispatched"))
	view := tenantPage{Windows: v.windowChoices()}
	if err := v.get(ctx, "/tenants/"+url.PathEscape(name), nil, &view.tenantRow); err != nil {
		return nil, err
	}
	var held struct {
		Jobs []jobRow `json:"jobs"`
	}
	if !strings.Contains(name, `"`) { // the filter language has no name with a quote
		if err := v.get(ctx, "/jobs", url.Values{"where": {"tenant:" + filterValue(name) + " state:claimed,dispatched"}, "limit": {"50"}}, &held); err != nil {
			return nil, err
		}
	}
	view.Jobs = held.Jobs
	query := v.window()
	query.Set("tenant", name)
	shown, err := v.seriesOf(ctx, "/series", query)
	if err != nil {
		return nil, err
	}
	view.Charts = v.linked(append([]chart{shown.flow(0)}, shown.times()...), nil)
	if view.AtLimitToday, err = v.atLimit(ctx, name); err != nil || v.viewer.bounded() {
		return view, err
	}
	by, all, err := v.tenantLoads(ctx)
	if err != nil {
		return nil, err
	}
	if known := by[name]; known != nil {
		view.Due, view.Rows = known.Due, known.Rows
	}
	view.Noisy = noisy(view.Flight(), all)
	view.Entries, err = v.entries(ctx, cacheFor, "/audit", url.Values{"object": {"tenant"}, "name": {name}, "limit": {"20"}})
	return view, err
}

// atLimit adds up the looks of a day at which a tenant was at its concurrency. Upkeep looks each minute.
func (v *visit) atLimit(ctx context.Context, tenant string) (*time.Duration, error) {
	day, err := v.seriesOf(ctx, "/series", url.Values{"tenant": {tenant}, "window": {"24h"}, "slots": {"24"}})
	if err != nil || !day.Counted {
		return nil, err
	}
	var looks time.Duration
	for _, s := range day.Slots {
		if s.Level != nil {
			looks += time.Duration(s.Level.Full) * time.Minute
		}
	}
	return &looks, nil
}

// filterValue writes a text as a value of the filter language.
func filterValue(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }) {
		return `"` + text + `"`
	}
	return text
}

// limitFields are the limits of tenants and tiers.
var limitFields = []field{
	{name: "concurrency", label: "Concurrency", hint: "the most jobs in flight; empty: as it is; 0: no limit", kind: "text"},
	{name: "rate", label: "Rate", hint: "such as 10/s; empty: as it is"},
	{name: "weight", label: "Weight", hint: "its share beside others; empty: as it is"},
	{name: "queue", label: "Only in the queue", hint: "empty: in every queue"},
}

// limitsBody is a change of the limits of a tenant or a tier.
func limitsBody(values url.Values) (map[string]any, error) {
	body, set := map[string]any{}, map[string]any{}
	for _, name := range []string{"concurrency", "rate", "weight"} {
		if text := strings.TrimSpace(values.Get(name)); text != "" {
			set[name] = text
		}
	}
	if len(set) > 0 {
		body["set"] = set
	}
	for _, name := range []string{"queue", "for"} {
		if text := strings.TrimSpace(values.Get(name)); text != "" {
			body[name] = text
		}
	}
	if values.Has("tier_name") {
		body["tier"] = strings.TrimSpace(values.Get("tier_name"))
	}
	return body, nil
}

func tenantActs() []act {
	while := field{name: "for", label: "For", hint: "such as 2h; empty: for good", kind: "duration"}
	inQueue := field{name: "queue", label: "Only in the queue", hint: "empty: in every queue"}
	return []act{
		{
			name: "set-tenant-tier", label: "Change the tier", route: "set-tenant", command: "sluice tenants set {tenant} --tier={tier_name} --reason={reason}", sentence: "Put {tenant} into another tier. The tier's limits count from the next claim on.",
			fields: []field{{name: "tier_name", label: "Tier", hint: "empty: none"}}, body: limitsBody,
		},
		{
			name: "set-tenant", label: "Set limits", route: "set-tenant", command: "sluice tenants set {tenant} concurrency={concurrency} rate={rate} weight={weight} --queue={queue} --for={for} --reason={reason}",
			sentence: "Give {tenant} limits of its own, which count before those of its tier.", fields: append(slices.Clone(limitFields), while), body: limitsBody,
		},
		{
			name: "pause-tenant", label: "Pause", route: "pause-tenant", undo: "resume-tenant", command: "sluice pause {queue} --tenant={tenant} --for={for} --reason={reason}",
			sentence: "Pause {tenant}: none of its jobs is claimed. Those that run go on.", fields: []field{while, inQueue},
		},
		{
			name: "resume-tenant", label: "Resume", route: "resume-tenant", undo: "pause-tenant", command: "sluice resume {queue} --tenant={tenant} --reason={reason}",
			sentence: "Resume {tenant}: its jobs are claimed again.", fields: []field{inQueue},
		},
		{
			name: "delete-tenant", label: "Delete", route: "delete-tenant", danger: true, command: "sluice tenants delete {tenant} --reason={reason}", then: "/tenants",
			sentence: "Delete what is said of {tenant}: its tier and its limits. Its jobs stay, under the limits of their queues.",
		},
		{
			name: "add-tier", label: "Add a tier", route: "add-tier", command: "sluice tiers add {name} --reason={reason}", sentence: "Add a tier. Then set what it grants each tenant.",
			fields: []field{{name: "name", label: "Name", required: true}},
		},
		{name: "preset-tiers", label: "Add FREE, PRO and ENTERPRISE", route: "preset-tiers", command: "sluice tiers preset --reason={reason}", sentence: "Add three tiers, with 1, 5 and 20 jobs in flight for each tenant."},
		{
			name: "set-tier", label: "Set limits", route: "set-tier", command: "sluice tiers set {tier} concurrency={concurrency} rate={rate} weight={weight} --queue={queue} --reason={reason}",
			sentence: "Say what the tier {tier} grants each of its tenants.", fields: limitFields, body: limitsBody,
		},
		{name: "delete-tier", label: "Delete", route: "delete-tier", danger: true, command: "sluice tiers delete {tier} --reason={reason}", sentence: "Delete the tier {tier} and its limits. Its tenants are then in none."},
	}
}
