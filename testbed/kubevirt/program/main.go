// KubeVirt's own virt-api and virt-controller in one program: the first argument chooses the component, the rest are
// the component's own flags. With any of `crds`, `webhooks`, `rbac` and `apiservices` it prints, as a JSON object of
// lists, what KubeVirt's operator would install. Built and cached by testbed/build.py, started by testbed/kubevirt.
// Nothing of KubeVirt is changed here.
//
// Its packages need seconds before main is called. So that these can pass while the API server starts, a component
// whose --kubeconfig does not exist yet waits for it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	klog "kubevirt.io/client-go/log"
	"kubevirt.io/kubevirt/pkg/service"
	virtapi "kubevirt.io/kubevirt/pkg/virt-api"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

const namespace = "kubevirt"

var newCRDs = []func() (*extv1.CustomResourceDefinition, error){
	components.NewVirtualMachineCrd,
	components.NewVirtualMachineInstanceCrd,
	components.NewVirtualMachineInstanceMigrationCrd,
	components.NewKubeVirtCrd,
	components.NewMigrationPolicyCrd,
	components.NewPresetCrd,
	components.NewReplicaSetCrd,
	components.NewVirtualMachinePoolCrd,
	components.NewVirtualMachineSnapshotCrd,
	components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineRestoreCrd,
	components.NewVirtualMachineExportCrd,
	components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachineClusterInstancetypeCrd,
	components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineClusterPreferenceCrd,
	components.NewVirtualMachineCloneCrd,
}

var printers = map[string]func() ([]runtime.Object, error){
	"crds":        crds,
	"webhooks":    webhooks,
	"rbac":        roles,
	"apiservices": apiServices,
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("expected virt-api, virt-controller, or any of crds, webhooks, rbac and apiservices"))
	}
	names := os.Args[1:]
	switch names[0] {
	case "virt-api":
		takeFlags(names[1:])
		klog.InitializeLogging("virt-api")
		app := virtapi.NewVirtApi()
		service.Setup(app)
		app.Execute()
	case "virt-controller":
		takeFlags(names[1:])
		watch.Execute()
	default:
		printObjects(names)
	}
}

func takeFlags(flags []string) {
	os.Args = append([]string{os.Args[0]}, flags...) // both components read them from here
	for _, flag := range flags {
		path, isKubeconfig := strings.CutPrefix(flag, "--kubeconfig=")
		for isKubeconfig {
			if _, err := os.Stat(path); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func printObjects(names []string) {
	printed := map[string][]runtime.Object{}
	for _, name := range names {
		list, known := printers[name]
		if !known {
			fail(fmt.Errorf("%q is neither a component nor a kind of objects", name))
		}
		objects, err := list()
		if err != nil {
			fail(err)
		}
		printed[name] = objects
	}
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		fail(err)
	}
}

func crds() ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, newCRD := range newCRDs {
		crd, err := newCRD()
		if err != nil {
			return nil, err
		}
		objects = append(objects, crd)
	}
	return objects, nil
}

func webhooks() ([]runtime.Object, error) {
	return []runtime.Object{
		components.NewVirtAPIValidatingWebhookConfiguration(namespace),
		components.NewVirtAPIMutatingWebhookConfiguration(namespace),
	}, nil
}

func roles() ([]runtime.Object, error) {
	objects := rbac.GetAllApiServer(namespace)
	objects = append(objects, rbac.GetAllController(namespace)...)
	objects = append(objects, rbac.GetAllHandler(namespace)...)
	return append(objects, rbac.GetAllCluster()...), nil
}

func apiServices() ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		objects = append(objects, service)
	}
	return objects, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
