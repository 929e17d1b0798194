package io.pgque;

import java.util.Date;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

import static com.tngtech.archunit.core.domain.JavaAccess.Predicates.target;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
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
	static final ArchRule timeIsTheDatabases = noClasses().that()
		.resideOutsideOfPackage("io.pgque.test..")
		.should()
		.callMethod(System.class, "currentTimeMillis")
		.orShould()
		.callMethodWhere(
				target(nameMatching("now|system.*|tick.*")).and(target(owner(resideInAPackage("java.time..")))))
		.orShould()
		.callConstructor(Date.class)
		.because("the clocks of instances differ, and the engine compares what they have written")
		.allowEmptyShould(true);

	@ArchTest
	static final ArchRule noFieldInjection = NO_CLASSES_SHOULD_USE_FIELD_INJECTION.allowEmptyShould(true);

}
