package console_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

// waving serves a console whose store has 600 due jobs of mail, at a rate of 1/s, and 5 jobs of reports for later.
func waving(t *testing.T, role access.Role) *site {
	t.Helper()
	s := open(t, role, console.Options{})
	s.set("mail", "", func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: 1, Per: time.Second} })
	jobs := make([]sluice.NewJob, 0, 605)
	for range 600 {
		jobs = append(jobs, sluice.NewJob{Queue: "mail", Payload: []byte("{}")})
	}
	for range 5 {
		jobs = append(jobs, sluice.NewJob{Queue: "reports", Payload: []byte("{}"), EnqueueOptions: sluice.EnqueueOptions{DueAt: time.Now().Add(time.Hour)}})
	}
	if _, err := s.client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	s.counted()
	return s
}

func TestWavesShowWhatFallsDue(t *testing.T) {
	t.Parallel()
	s := waving(t, access.RoleViewer)
	s.has("/waves", "Due in the next 2h: 5 jobs.", `class="fill-1"`, "reports: 5 jobs", "already", "By the present limits they are done at", "sluice forecast --ahead 2h", "-What if")
	s.has("/waves?csv=due", "reports (jobs)", ",5")
	s.has("/waves?ahead=24h", "Due in the next 24h")
	operator := waving(t, access.RoleOperator)
	page := html.UnescapeString(operator.has("/waves", "/do/all-edit?spread=30m&amp;where=queue%3Areports"))
	_, where, _ := strings.Cut(page, "/do/all-edit?spread=30m&")
	where, _, _ = strings.Cut(where, `"`)
	operator.has("/do/all-edit?"+where, "<strong>5 jobs</strong>")
	s.has("/waves?by=tenant&bucket=1h", "no tenant: 5 jobs", "<option selected>1h</option>", "sluice forecast --ahead 2h --bucket 1h --by tenant", "by=tenant")
	s.has("/waves?ahead=7d&bucket=1m", "-<option selected>", "-<option>1m</option>") // later than in a day, jobs are counted by the hour
}

func TestWavesAreColouredByTenant(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.set("renewals", "", func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: 1, Per: time.Second} })
	due := time.Now().Add(30 * time.Minute)
	for tenant, jobs := range map[string]int{"acme": 3, "globex": 2, "": 1} {
		for range jobs {
			s.enqueue(sluice.NewJob{Queue: "renewals", EnqueueOptions: sluice.EnqueueOptions{DueAt: due, Tenant: tenant}})
		}
	}
	s.counted()
	s.has("/waves?by=tenant&queue=renewals", "acme: 3 jobs", "globex: 2 jobs", "no tenant: 1 job", "-renewals: ")
	s.has("/waves?by=tenant&csv=due", "time,acme (jobs),globex (jobs),no tenant (jobs)")
	// A rate for the hours of the waves, each day.
	s.has("/waves?queue=renewals&rate=10", "UTC each day", "schedule-setting", "from="+url.QueryEscape(due.UTC().Format("15:0"))[:4])
}

func TestWavesShadeTheJobsThatWait(t *testing.T) {
	t.Parallel()
	s := waving(t, access.RoleOperator)
	s.has("/waves?queue=mail", `class="backlog"`, "due jobs that wait, by the present limits", "wait at once, from ", "-what if<", `-class="waits assumed"`)
	s.has("/waves?queue=mail&rate=10", `class="backlog"`, `class="waits assumed"`, "due jobs that wait, what if", "capacity, what if: ")
	s.has("/waves?queue=mail&rate=10&csv=due", "due jobs that wait, what if (jobs)", "capacity, what if (jobs)")
	s.has("/waves?queue=reports", `-class="backlog"`, "-wait at once") // its jobs start as they fall due
}

func TestWhatIfShowsTheNewEndBesideThePresentOne(t *testing.T) {
	t.Parallel()
	s := waving(t, access.RoleOperator)
	s.has("/waves?queue=mail", "What if", "now 1/s", "-Done by these", "-Set this rate")
	s.has("/waves?queue=mail&rate=10&by=tenant&bucket=5m", "sluice forecast mail --ahead 2h --bucket 5m --by tenant --rate 10/s")
	s.has("/waves?queue=mail&rate=10", "Done by these", "9m00s sooner", "sluice forecast mail --ahead 2h --rate 10/s", "Set this rate", "value=10%2Fs")
	s.has("/waves?queue=mail&rate=0&concurrency=0", "-Done by these")
	if _, status := s.page("/waves?queue=mail&batch=x"); status != 422 {
		t.Errorf("a wrong batch: %d", status)
	}
	queue, err := s.client.Queue(t.Context(), "mail")
	if err != nil || queue.Settings.Rate.PerSecond() != 1 {
		t.Errorf("a question has changed the rate to %v (%v)", queue.Settings.Rate, err)
	}
}

func TestWavesWithoutAQueueSaySo(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.has("/waves", "There is no queue yet", "-Nobody has counted")
	s.set("mail", "", func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: 1, Per: time.Second} })
	s.has("/waves?queue=mail&rate=5", "Nobody has counted")
}

func TestTheCapacityIsOfAChosenQueueAndNoJobs(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	for _, queue := range []string{"mail", "reports"} {
		s.set(queue, "", func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: 1, Per: 12 * time.Second} })
		for range 4 {
			s.enqueue(sluice.NewJob{Queue: queue, EnqueueOptions: sluice.EnqueueOptions{DueAt: time.Now().Add(time.Hour)}})
		}
	}
	s.counted()
	s.has("/waves?queue=mail&bucket=1m", "per bucket, at most 4<", "capacity by present limits: 5")
	s.has("/waves?bucket=1m", "per bucket, at most 8<", "-capacity by present limits")
}
