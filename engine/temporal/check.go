package temporal

import (
	"context"
	"fmt"

	"github.com/sluice-queue/sluice/engine"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Check returns the server's version, the namespace's retention of ended runs, and the workflow pollers of the
// task queue in the last minutes. See [engine.Engine].
func (e *Engine) Check(ctx context.Context, target engine.Target) (engine.Report, error) {
	var report engine.Report
	p, err := e.placeOf(target)
	if err != nil {
		return report, err
	}
	for _, part := range []struct {
		doing string
		look  func(ctx context.Context, p place, report *engine.Report) error
	}{
		{"ask the server for its version", e.version},
		{fmt.Sprintf("describe namespace %q", p.Namespace), e.retention},
		{fmt.Sprintf("describe task queue %q in namespace %q", p.TaskQueue, p.Namespace), e.pollers},
	} {
		call, cancel := e.limited(ctx)
		err := part.look(call, p, &report)
		cancel()
		if err != nil {
			return report, fault(part.doing, err)
		}
	}
	return report, nil
}

func (e *Engine) version(ctx context.Context, _ place, report *engine.Report) error {
	answer, err := e.service.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	report.Version = answer.GetServerVersion()
	return err
}

func (e *Engine) retention(ctx context.Context, p place, report *engine.Report) error {
	answer, err := e.service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: p.Namespace})
	report.Retention = answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if err == nil {
		e.keeps.Store(p.Namespace, report.Retention)
	}
	return err
}

func (e *Engine) pollers(ctx context.Context, p place, report *engine.Report) error {
	answer, err := e.service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     p.Namespace,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: p.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	report.Pollers = len(answer.GetPollers())
	return err
}
