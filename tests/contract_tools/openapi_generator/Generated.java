package javax.annotation;

/** Stands for the mark that generated classes bear; the library that has it brings nothing else that they use. */
public @interface Generated {
    String[] value();

    String date() default "";

    String comments() default "";
}
