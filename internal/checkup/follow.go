package checkup

import (
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
)

// LostFollower reports a follower whose statement does not run with each move.
func (r *Report) LostFollower(f sluice.Follower, trigger string) {
	r.Find(health.SeverityError, "follower",
		fmt.Sprintf("the follower %q of queue %s is not run with each move: %s is missing, or is not as Follow made it", f.Name, f.Queue, trigger),
		"the rows that it keeps say something else than their jobs",
		"start the program that calls Follow; then bring the rows up to date from the jobs")
}

// FailingFollower reports a follower whose statement the store cannot run. End is the statement or
// command that removes the follower.
func (r *Report) FailingFollower(f sluice.Follower, err error, end string) {
	r.Find(health.SeverityError, "follower",
		fmt.Sprintf("the statement of the follower %q of queue %s cannot be run: %v", f.Name, f.Queue, err),
		"no job of the queue is claimed, finished or cancelled any more: each move fails with the statement. Bring back the table or the column that is "+
			"missing, or start the program with another statement; if neither can be, end the follower: the jobs move again, and the rows stay behind",
		end)
}
