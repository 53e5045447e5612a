package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are the objects that `kubectl apply -k` would send, decoded into the types of Kubernetes. An unknown field
// is an error.
type manifests struct {
	namespace  corev1.Namespace
	account    corev1.ServiceAccount
	migrate    batchv1.Job
	server     appsv1.Deployment
	service    corev1.Service
	disruption policyv1.PodDisruptionBudget
	network    networkingv1.NetworkPolicy
}

func readManifests(t *testing.T) (all manifests) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]any{
		"Namespace": &all.namespace, "ServiceAccount": &all.account, "Job": &all.migrate, "Deployment": &all.server, "Service": &all.service,
		"PodDisruptionBudget": &all.disruption, "NetworkPolicy": &all.network,
	}
	for _, one := range built.Resources() {
		text, err := one.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		into, known := kinds[one.GetKind()]
		if !known {
			t.Fatalf("there is a second %s, or an unknown kind", one.GetKind())
		}
		delete(kinds, one.GetKind())
		if err := yaml.UnmarshalStrict(text, into, yaml.DisallowUnknownFields); err != nil {
			t.Errorf("%s: %v", one.GetKind(), err)
		}
		if one.GetKind() != "Namespace" && one.GetNamespace() != "sluice" {
			t.Errorf("%s is in the namespace %q", one.GetKind(), one.GetNamespace())
		}
	}
	if len(kinds) > 0 {
		t.Fatalf("there is no %v", slices.Collect(maps.Keys(kinds)))
	}
	return all
}

// storeSecret is the example of the secret.
func storeSecret(t *testing.T) (secret corev1.Secret) {
	t.Helper()
	text, err := os.ReadFile("kubernetes/secret.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &secret, yaml.DisallowUnknownFields); err != nil {
		t.Fatal(err)
	}
	return secret
}

// exampleWorker is the example of workers of the user's own.
func exampleWorker(t *testing.T) (worker appsv1.Deployment) {
	t.Helper()
	text, err := os.ReadFile("kubernetes/worker.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &worker, yaml.DisallowUnknownFields); err != nil {
		t.Fatal(err)
	}
	return worker
}

func TestManifestsAreHardened(t *testing.T) {
	t.Parallel()
	all := readManifests(t)
	if all.namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Error("the namespace lets more in than what is hardened")
	}
	if is(all.account.AutomountServiceAccountToken) {
		t.Error("the account has a token")
	}
	for name, pod := range map[string]corev1.PodSpec{"migrate": all.migrate.Spec.Template.Spec, "server": all.server.Spec.Template.Spec, "worker": exampleWorker(t).Spec.Template.Spec} {
		if is(pod.AutomountServiceAccountToken) || pod.ServiceAccountName != all.account.Name || pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Volumes) > 0 {
			t.Errorf("%s: the pod has more than it needs", name)
		}
		rights := pod.SecurityContext
		if !is(rights.RunAsNonRoot) || *rights.RunAsUser != 65532 || *rights.RunAsGroup != 65532 || rights.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pod runs as %+v", name, rights)
		}
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
			t.Fatalf("%s: one container was expected", name)
		}
		c := pod.Containers[0]
		if name != "worker" && c.Image != "sluice:dev" {
			t.Errorf("%s: the image is %q", name, c.Image)
		}
		own := c.SecurityContext
		if is(own.AllowPrivilegeEscalation) || own.AllowPrivilegeEscalation == nil || !is(own.ReadOnlyRootFilesystem) || is(own.Privileged) ||
			!slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0 {
			t.Errorf("%s: the container may %+v", name, own)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: the container's resources are %+v", name, c.Resources)
		}
		secret := storeSecret(t)
		for _, variable := range c.Env {
			if variable.ValueFrom == nil {
				if strings.Contains(variable.Value, "://") {
					t.Errorf("%s: %s is written into the manifest", name, variable.Name)
				}
				continue
			}
			from := variable.ValueFrom.SecretKeyRef
			if _, there := secret.StringData[from.Key]; from.Name != secret.Name || !there {
				t.Errorf("%s: %s comes from %+v, which the example of the secret has not", name, variable.Name, from)
			}
		}
	}
}

func is(set *bool) bool { return set != nil && *set }

func TestManifestsFitTogether(t *testing.T) {
	t.Parallel()
	all := readManifests(t)
	labels := all.server.Spec.Template.Labels
	for name, selector := range map[string]map[string]string{
		"the deployment": all.server.Spec.Selector.MatchLabels, "the service": all.service.Spec.Selector,
		"the disruption budget": all.disruption.Spec.Selector.MatchLabels, "the network policy": all.network.Spec.PodSelector.MatchLabels,
	} {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s selects %s=%s, and the server's pods have %q", name, key, value, labels[key])
			}
		}
	}
	job := all.migrate.Spec.Template.Labels
	if job["app.kubernetes.io/component"] == labels["app.kubernetes.io/component"] {
		t.Error("the job's pod is taken for a server")
	}
	if *all.server.Spec.Replicas != 2 || all.disruption.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("%d replicas, of which %s must be there", *all.server.Spec.Replicas, all.disruption.Spec.MinAvailable)
	}
	pod := all.server.Spec.Template
	c := pod.Spec.Containers[0]
	port := c.Ports[0]
	if !slices.Contains(c.Args, fmt.Sprintf("--monitor=0.0.0.0:%d", port.ContainerPort)) || pod.Annotations["prometheus.io/port"] != fmt.Sprint(port.ContainerPort) {
		t.Errorf("the server is to answer at %d: %v, %v", port.ContainerPort, c.Args, pod.Annotations)
	}
	if p := all.service.Spec.Ports[0]; p.TargetPort.StrVal != port.Name || p.Port != port.ContainerPort {
		t.Errorf("the service leads to %+v", p)
	}
	if p := all.network.Spec.Ingress[0].Ports[0].Port; p.StrVal != port.Name {
		t.Errorf("the network policy lets through %s", p)
	}
	for name, probe := range map[string]*corev1.Probe{"live": c.LivenessProbe, "ready": c.ReadinessProbe} {
		// A check may take 2 s, and its answer another half second.
		if probe.HTTPGet.Port.StrVal != port.Name || probe.TimeoutSeconds < 3 {
			t.Errorf("%s: %+v", name, probe)
		}
	}
	fitsTheGrace(t, pod.Spec)
}

// TestExampleOfWorkersFitsTogether checks the example against the other manifests: nothing may take its pods for
// servers.
func TestExampleOfWorkersFitsTogether(t *testing.T) {
	t.Parallel()
	all, worker := readManifests(t), exampleWorker(t)
	labels, pod := worker.Spec.Template.Labels, worker.Spec.Template
	for key, value := range worker.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("it selects %s=%s, and its pods have %q", key, value, labels[key])
		}
	}
	if component := labels["app.kubernetes.io/component"]; worker.Namespace != all.namespace.Name || component == all.server.Spec.Template.Labels["app.kubernetes.io/component"] {
		t.Errorf("its pods are %s in %s", component, worker.Namespace)
	}
	c := pod.Spec.Containers[0]
	if port := fmt.Sprint(c.Ports[0].ContainerPort); !slices.Contains(c.Args, "--metrics=0.0.0.0:"+port) || pod.Annotations["prometheus.io/port"] != port {
		t.Errorf("its metrics are to be at %s: %v, %v", port, c.Args, pod.Annotations)
	}
	for key, value := range all.network.Spec.PodSelector.MatchLabels { // the network policy lets only Prometheus reach these pods
		if labels[key] != value {
			t.Errorf("the network policy leaves it out: %v", labels)
		}
	}
	fitsTheGrace(t, pod.Spec)
}

// fitsTheGrace checks that Kubernetes gives a pod more time to end than its program takes.
func fitsTheGrace(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	has := false
	for _, arg := range pod.Containers[0].Args {
		if grace, is := strings.CutPrefix(arg, "--grace="); is {
			has = true
			within, err := time.ParseDuration(grace)
			if err != nil || *pod.TerminationGracePeriodSeconds <= int64(within.Seconds())+10 {
				t.Errorf("the grace of %s does not fit into %d s, %v", grace, *pod.TerminationGracePeriodSeconds, err)
			}
		}
	}
	if !has {
		t.Error("it has no grace")
	}
}

// variables returns the environment of a container. A value from a secret becomes $KEY.
func variables(t *testing.T, of []corev1.EnvVar) (env []string) {
	t.Helper()
	for _, v := range of {
		value := v.Value
		if v.ValueFrom != nil {
			value = "$" + v.ValueFrom.SecretKeyRef.Key
		}
		env = append(env, v.Name+"="+value)
	}
	return env
}
