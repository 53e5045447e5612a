package console_test

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

// hostile is a text that would run a script if a page took it for HTML.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// contains checks that a page has the texts, and lacks those that begin with an exclamation mark.
func (s *site) contains(path string, wants ...string) {
	s.t.Helper()
	text, status := s.page(path)
	if status != http.StatusOK {
		s.t.Fatalf("%s: got %d, want 200: %s", path, status, text)
	}
	for _, want := range wants {
		if absent, not := strings.CutPrefix(want, "!"); not == strings.Contains(text, strings.TrimPrefix(want, "!")) {
			s.t.Errorf("%s: want %q (absent: %v %s)", path, want, not, absent)
		}
	}
}

// job reads a job from the store.
func (s *site) job(id sluice.ID) sluice.Job {
	s.t.Helper()
	job, err := s.client.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job
}

func TestJobsAreListedByFilterAndState(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	mail := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme", Key: "order-42"}})
	later := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{DueAt: time.Now().Add(time.Hour)}})
	other := s.enqueue(sluice.NewJob{Queue: "reports"})
	s.contains("/jobs", mail.String(), later.String(), other.String(), `ready <span class="amount">2<`, `scheduled <span class="amount">1<`, `aria-sort="descending"><a href="/jobs?sort=oldest">created `)
	s.contains("/jobs?q=queue:mail", mail.String(), later.String(), "!"+other.String(), `ready <span class="amount">1<`)
	s.contains("/jobs?q=queue:mail&state=ready", mail.String(), "!"+later.String())
	s.contains("/jobs?q=key:order-42+tenant:acme", mail.String(), "!"+later.String(), `href="/jobs?q=tenant%3Aacme"`, `href="/jobs?q=key%3Aorder-42"`, "!amount")
	s.contains("/jobs?q=error:~timeout", "No job matches", `class="slow"`)
	s.contains("/jobs?q=colour:red", "The filter cannot be read", "is no field")
	s.contains("/jobs?size=50&cols=key&cols=labels", "order-42", "!<th scope=\"col\">tenant")
	s.contains("/jobs?cols=key&cols=tenant&cols=key&cols=colour", `<th scope="col">key</th><th scope="col">tenant</th></tr>`,
		`<a href="/jobs?cols=tenant&amp;cols=key" aria-label="Move tenant one place forward">`, "!Move key one place forward")
	s.contains("/jobs?q=queue:mail+tenant:acme+key:none", `<ul class="plain"><li><a href="/jobs?q=queue%3Amail&#43;tenant%3Aacme">key:none</a> <span class="muted">1 job without it</span></li>`)
	s.claim("mail")
	s.contains("/jobs?q=state:claimed&cols=lease&cols=run", `<th scope="col">lease</th><th scope="col">run</th></tr>`, `<td class="mono">—</td>`, `<td><time`)
}

func TestViewsForAllAreInTheSideBar(t *testing.T) {
	t.Parallel()
	options := console.Options{Views: []console.View{{Name: "Stuck <b>mails</b>", Filter: "queue:mail state:ready age:>5m"}}}
	const link = `<a href="/jobs?q=queue%3Amail&#43;state%3Aready&#43;age%3A%3E5m"`
	s := open(t, access.RoleViewer, options)
	s.contains("/queues", link+">Stuck &lt;b&gt;mails&lt;/b&gt;</a>")
	s.contains("/settings", "<dt>View Stuck &lt;b&gt;mails&lt;/b&gt;</dt><dd>"+link+">")
	s.contains("/jobs?q=queue%3Amail+state%3Aready+age%3A%3E5m", link+` aria-current="true">`)
	bounded := openAs(t, access.Caller{Name: "ann", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"reports"}}}, options)
	bounded.contains("/queues", "!Stuck")
	bounded.contains("/settings", "!Stuck")
	for _, wrong := range []console.View{{Name: "", Filter: "queue:mail"}, {Name: "Colours", Filter: "colour:red"}} {
		if _, err := console.New(console.Options{Views: []console.View{wrong}}); err == nil {
			t.Errorf("%+v is taken for a view", wrong)
		}
	}
}

func TestAFilterSuggestsNames(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "a b", Labels: map[string]string{"region": "eu"}}})
	s.contains("/jobs", `<option value="state:dead">`, `<option value="run:open">`, `<option value="queue:mail">`, `<option value="tenant:&#34;a b&#34;">`, `<option value="label.region:eu">`, `<option value="label.">`, `<option value="error:">`)
	bounded := openAs(t, access.Caller{Name: "ann", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"reports"}}}, console.Options{})
	bounded.enqueue(sluice.NewJob{Queue: "mail"})
	bounded.enqueue(sluice.NewJob{Queue: "reports"})
	bounded.contains("/jobs", `<option value="queue:reports">`, `!<option value="queue:mail">`)
}

func TestAKeyLeadsToItsJob(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Key: "order-42"}})
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Get(s.URL + "/jobs?q=key:order-42&one=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if at := response.Header.Get("Location"); at != "/jobs/"+id.String() {
		t.Errorf("got %d to %q, want the page of the job", response.StatusCode, at)
	}
	s.contains("/jobs?q=key:order-43&one=1", "No job matches")
}

func TestJobsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	first := s.enqueue(sluice.NewJob{Queue: "mail"})
	var last sluice.ID
	for range 50 {
		last = s.enqueue(sluice.NewJob{Queue: "mail"})
	}
	for at, ends := range map[string][2]sluice.ID{"/jobs": {last, first}, "/jobs?sort=oldest": {first, last}} {
		text, _ := s.page(at)
		_, rest, more := strings.Cut(text, `rel="next"`)
		if !strings.Contains(text, `<table class="jobs" aria-rowcount="-1">`) {
			t.Error("the list does not say that its length is unknown")
		}
		if !more || !strings.Contains(text, ends[0].String()) || strings.Contains(text, ends[1].String()) {
			t.Fatalf("the first page of %s is not of the first 50 jobs: %s", at, rest)
		}
		before := text[:len(text)-len(rest)]
		_, link, _ := strings.Cut(before[strings.LastIndex(before, "<a href="):], `"`)
		link, _, _ = strings.Cut(link, `"`)
		s.contains(strings.ReplaceAll(link, "&amp;", "&"), ends[1].String(), "!"+ends[0].String(), "These are all", ">First page<", "!aria-rowcount")
	}
	s.contains("/jobs?size=100", first.String(), last.String())
}

func TestJobsAreSavedAsFiles(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleReader, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Key: "=1+1"}})
	s.contains("/jobs?export=csv&cols=key&cols=queue", "id,key,queue\n"+id.String()+",'=1+1,mail\n")
	s.contains("/jobs?export=jsonl", `{"id":"`+id.String()+`"`)
}

// TestAllJobsThatMatchAreSavedAsAFile saves more jobs than a part has, and then from the place where a full file ends.
func TestAllJobsThatMatchAreSavedAsAFile(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleReader, console.Options{})
	jobs := make([]sluice.NewJob, 0, 460)
	for n := range 460 {
		jobs = append(jobs, sluice.NewJob{Queue: []string{"mail", "reports"}[n%10/9], Payload: []byte("{}")})
	}
	if _, err := s.client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	s.contains("/jobs?q=queue:mail", `<a href="/jobs?q=queue%3Amail&amp;save=csv" download>CSV of all</a>`)
	saved := func(path string) (ids []string, rest string) {
		t.Helper()
		text, status := s.page(path)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		for line := range strings.Lines(text) {
			if id, row, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), `{"id":"`), ","); len(strings.Trim(id, `"`)) == 36 {
				ids = append(ids, strings.Trim(id, `"`))
			} else {
				rest += id + " " + row + "\n"
			}
		}
		slices.Sort(ids)
		if n := len(ids); len(slices.Compact(ids)) != n {
			t.Errorf("%s: of %d jobs some are there twice", path, n)
		}
		return ids, rest
	}
	if ids, rest := saved("/jobs?q=queue:mail&state=ready&save=csv&cols=queue"); len(ids) != 414 || rest != "id queue\n" {
		t.Errorf("the CSV has %d jobs and %q", len(ids), rest)
	}
	all, rest := saved("/jobs?q=queue:mail&save=jsonl")
	if len(all) != 414 || rest != "" {
		t.Errorf("the file has %d jobs and %q", len(all), rest)
	}
	s.console.SaveAtMost(300)
	first, rest := saved("/jobs?q=queue:mail&save=csv&sort=oldest")
	_, cursor, more := strings.Cut(strings.TrimSpace(rest), "\nmore ")
	if len(first) != 400 || !more {
		t.Fatalf("a full file has %d jobs and %q", len(first), rest)
	}
	last, rest := saved("/jobs?q=queue:mail&save=jsonl&sort=oldest&after=" + url.QueryEscape(cursor))
	both := slices.Sorted(slices.Values(slices.Concat(first, last)))
	if !slices.Equal(both, all) || rest != "" {
		t.Errorf("both files have %d jobs and %q, want %d", len(both), rest, len(all))
	}
	if text, status := s.page("/jobs?save=pdf"); status != http.StatusBadRequest {
		t.Errorf("another kind: %d %s", status, text)
	}
	if text, status := s.page("/jobs?save=csv&q=colour:red"); status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong filter: %d %s", status, text)
	}
}

// TestAFileThatCannotBeWholeBreaksOff: the process ends soon, so that the second part of the file never comes.
func TestAFileThatCannotBeWholeBreaksOff(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleReader, console.Options{})
	for range 201 {
		s.enqueue(sluice.NewJob{Queue: "mail"})
	}
	s.console.Drain()
	response, err := s.Client().Get(s.URL + "/jobs?save=csv")
	if err != nil {
		return // before the head was read
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the answer of %d bytes ends well, want it to break off", len(text))
	}
}

func TestTheAuditIsSavedAsAFile(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.set("mail", "=the contract", func(q *sluice.Settings) { q.MaxAttempts = 5 })
	s.contains("/audit", "CSV of this page")
	s.contains("/audit?export=csv&object=queue", "seq,at,actor,event,object,name,job_id,from,to,reason,before,after\n", ",bob,change,queue,mail,,,,'=the contract,")
	s.contains("/audit?export=jsonl", `"reason":"=the contract"`)
}

func TestAPeekShowsThePayloadToReadersAlone(t *testing.T) {
	t.Parallel()
	for role, wants := range map[access.Role][]string{access.RoleReader: {"&#34;to&#34;: &#34;Lovelace&#34;"}, access.RoleViewer: {"Your role does not read payloads", "!Lovelace"}} {
		s := open(t, role, console.Options{})
		id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"to":"Lovelace"}`)})
		s.contains("/jobs/"+id.String()+"/peek", append(wants, "!<html")...)
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail", Payload: []byte(`{"<script>alert(1)</script>":"<img src=x onerror=alert(2)>"}`), EnqueueOptions: sluice.EnqueueOptions{
		Tenant: hostile, Key: hostile, OrderKey: hostile, LimitKey: hostile, Labels: map[string]string{"name": hostile},
	}})
	for _, path := range []string{"/jobs?cols=tenant&cols=key&cols=labels", "/jobs?q=" + url.QueryEscape(`tenant:"`+hostile), "/jobs?q=" + url.QueryEscape(hostile), "/jobs?state=" + url.QueryEscape(hostile), "/jobs/" + id.String() + "/peek", "/jobs/" + id.String(), "/do/edit-job?id=" + id.String()} {
		if text, _ := s.page(path); strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
			t.Errorf("%s has the text as HTML", path)
		}
	}
}

func TestChosenJobsAreActedOn(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	one, two := s.enqueue(sluice.NewJob{Queue: "mail"}), s.enqueue(sluice.NewJob{Queue: "mail"})
	both := url.Values{"ids": {one.String(), two.String()}}
	dialog := s.ask("hold-jobs", both)
	for _, want := range []string{"<strong>2 jobs</strong>", one.String() + " of mail: ready", "sluice hold " + one.String() + " " + two.String(), "/api/v1/jobs/hold"} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the dialog lacks %q: %s", want, dialog)
		}
	}
	if text, _ := s.do("hold-jobs", both, nil); !strings.Contains(text, "reason must be given") {
		t.Errorf("got %s, want a demand for a reason", text)
	}
	both.Set("reason", "a look")
	if answer, status := s.do("hold-jobs", both, nil); status != http.StatusNoContent || !strings.Contains(answer, "/do/release-jobs?") {
		t.Errorf("got %d %s, want an undo", status, answer)
	}
	if job := s.job(one); job.BlockedBy != one {
		t.Errorf("%s is not held", one)
	}
	if answer, status := s.do("cancel-jobs", url.Values{"ids": {one.String(), sluice.NewID().String()}}, nil); status == http.StatusNoContent {
		t.Errorf("got %d %s, want a refusal: one of the jobs is not there", status, answer)
	}
	if answer, status := s.do("cancel-jobs", both, nil); status != http.StatusNoContent || s.job(two).State != sluice.StateCancelled {
		t.Errorf("got %d %s, want cancelled jobs", status, answer)
	}
	if text := s.ask("cancel-jobs", url.Values{}); !strings.Contains(text, "no job is chosen") {
		t.Errorf("got %s, want a refusal", text)
	}
}

// ask opens the dialog of an act on chosen jobs.
func (s *site) ask(act string, values url.Values) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+"/ask/"+act, strings.NewReader(values.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	text, _ := s.send(request)
	return text
}

func TestAllThatMatchBecomesAnOperation(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{Environment: "production"})
	for range 3 {
		s.enqueue(sluice.NewJob{Queue: "mail"})
	}
	s.enqueue(sluice.NewJob{Queue: "reports"})
	dialog, _ := s.page("/do/all-cancel?where=queue:mail")
	for _, want := range []string{"<strong>3 jobs</strong>", "Type 3 to confirm", "queue:mail state:queued,claimed,dispatched", "sluice cancel --all --where="} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the dialog lacks %q: %s", want, dialog)
		}
	}
	s.enqueue(sluice.NewJob{Queue: "letters"})
	s.claim("letters")
	for where, want := range map[string]string{"queue:letters": "<strong>1 job: 1 claimed</strong>", "queue:mail": "<strong>3 jobs</strong>"} {
		if dialog, _ := s.page("/do/all-cancel?where=" + where); !strings.Contains(dialog, want) {
			t.Errorf("the dialog of %s lacks %q: %s", where, want, dialog)
		}
	}
	values := url.Values{"where": {"queue:mail state:queued"}, "counted": {"3"}, "reason": {"wrong list"}, "rate": {"20/s"}, "confirm": {"4"}}
	if text, _ := s.do("all-cancel", values, nil); !strings.Contains(text, "must be 3, the number of jobs") {
		t.Errorf("got %s, want a demand for the number", text)
	}
	values.Set("confirm", "3")
	if answer, status := s.do("all-cancel", values, nil); status != http.StatusNoContent || !strings.Contains(answer, `"go":"/operations/`) {
		t.Errorf("got %d %s, want the page of the operation", status, answer)
	}
	edit := url.Values{"where": {"queue:reports"}, "priority": {"9"}, "postpone": {"1h"}, "spread": {"30m"}, "reason": {"not now"}, "limit": {""}}
	if dialog, _ := s.page("/do/all-edit?" + edit.Encode()); !strings.Contains(dialog, "sluice edit --all --where=&#39;queue:reports state:queued&#39; --detach --reason=&#39;not now&#39; --priority=9 --postpone=1h --spread=30m") {
		t.Errorf("the dialog lacks the command: %s", dialog)
	}
	answer, status := s.do("all-edit", edit, nil)
	if status != http.StatusNoContent {
		t.Fatalf("got %d %s, want an edit", status, answer)
	}
	_, at, _ := strings.Cut(answer, `"go":"`)
	at, _, _ = strings.Cut(at, `"`)
	s.contains(at, "priority 9, later by 1h, spread over 30m", "queue:reports")
	if text, _ := s.page("/do/all-cancel?where=queue:none"); !strings.Contains(text, "no job matches") {
		t.Errorf("got %s, want to hear that nothing matches", text)
	}
}

func TestChosenJobsAreChangedByAnOperation(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	one, two := s.enqueue(sluice.NewJob{Queue: "mail"}), s.enqueue(sluice.NewJob{Queue: "reports"})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	chosen := "id:" + one.String() + "," + two.String()
	s.contains("/jobs?q="+url.QueryEscape(chosen), `href="/jobs/`+one.String(), `href="/jobs/`+two.String(), `!<li class="slow"`)
	dialog, _ := s.page("/do/edit-jobs?" + url.Values{"ids": {one.String(), two.String()}}.Encode())
	for _, want := range []string{"<strong>2 jobs</strong>", one.String() + " of mail", "sluice edit --all --where=&#39;" + chosen + " state:queued&#39; --detach"} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the dialog lacks %q: %s", want, dialog)
		}
	}
	answer, status := s.do("edit-jobs", url.Values{"ids": {one.String(), two.String()}, "where": {chosen + " state:queued"}, "priority": {"2"}, "tenant": {"acme"}}, nil)
	if status != http.StatusNoContent {
		t.Fatalf("got %d %s, want an operation", status, answer)
	}
	_, at, _ := strings.Cut(answer, `"go":"`)
	at, _, _ = strings.Cut(at, `"`)
	s.contains(at, "priority 2, to acme", chosen, "of 2")
}

func TestViewersActOnNoJobs(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	s.contains("/jobs", "the role viewer may not do this", `!data-act="cancel-jobs"`)
	if text, status := s.do("cancel-jobs", url.Values{"ids": {id.String()}}, nil); status == http.StatusNoContent || s.job(id).State != sluice.StateQueued {
		t.Errorf("got %d %s, want a refusal", status, text)
	}
}

func TestTheListOfJobsCanBeSavedAsAViewAndSaysItsOrder(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{Base: "/sluice"})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.has("/sluice/jobs", `<form id="save-view"`, `<ul id="views"`, "By creation, the newest job first", `<a href="/sluice/jobs?sort=oldest">Oldest first</a>`, "/js/main.js")
	s.has("/sluice/jobs?sort=oldest&q=queue:mail", "By creation, the oldest job first", `aria-sort="ascending"`, `<a href="/sluice/jobs?q=queue%3Amail">Newest first</a>`, "=50 --oldest-first", "oldest_first=true")
	s.has("/sluice/queues", `<ul id="views"`, `-<form id="save-view"`)
}
