package io.pgque;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.GeneralCodingRules.NO_CLASSES_SHOULD_USE_FIELD_INJECTION;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

/**
 * What may know what.
 */
@AnalyzeClasses(packages = "io.pgque", importOptions = DoNotIncludeTests.class)
class ArchitectureTests {

	@ArchTest
	static final ArchRule onlyBootKnowsSpringBoot = noClasses().that()
		.resideOutsideOfPackage("io.pgque.boot..")
		.should()
		.dependOnClassesThat()
		.resideInAPackage("org.springframework.boot..")
		.because("everything else works in a Spring application without Boot")
		.allowEmptyShould(true);

	@ArchTest
	static final ArchRule nobodyKnowsBoot = noClasses().that()
		.resideOutsideOfPackage("io.pgque.boot..")
		.should()
		.dependOnClassesThat()
		.resideInAPackage("io.pgque.boot..")
		.allowEmptyShould(true);

	@ArchTest
	static final ArchRule coreDoesNotKnowListeners = noClasses().that()
		.resideInAPackage("io.pgque.core..")
		.should()
		.dependOnClassesThat()
		.resideInAnyPackage("io.pgque.listener..", "io.pgque.config..", "io.pgque.annotation..", "io.pgque.ticker..")
		.because("an application that only sends needs nothing of them")
		.allowEmptyShould(true);

	@ArchTest
	static final ArchRule clientIsTheBottom = noClasses().that()
		.resideInAnyPackage("io.pgque.client..", "io.pgque.support..", "io.pgque.schema..")
		.should()
		.dependOnClassesThat()
		.resideInAnyPackage("io.pgque.core..", "io.pgque.ticker..", "io.pgque.event..", "io.pgque.listener..",
				"io.pgque.config..", "io.pgque.annotation..")
		.allowEmptyShould(true);

	@ArchTest
	static final ArchRule noCycles = slices().matching("io.pgque.(*)..")
		.should()
		.beFreeOfCycles()
		.allowEmptyShould(true);

	@ArchTest
	static final ArchRule noFieldInjection = NO_CLASSES_SHOULD_USE_FIELD_INJECTION.allowEmptyShould(true);

}
